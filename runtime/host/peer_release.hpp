// SPDX-License-Identifier: Apache-2.0
// Whether this rank may access its peers' memory. After the loss of a rank, operations end, and
// buffers go back to users, only when no rank accesses its peers' memory any more; a rank that does
// not say so in time is killed. So a thread that leaves the runtime for an unknown time, to connect
// to other hosts or to run a user's callback, says so beforehand.
#pragma once

#include <atomic>

#include "base/board_header.hpp"

namespace horo::runtime {

/// Owns this rank's `poison_ack`. Thread: the holder of the progress token.
class PeerRelease {
 public:
  /// A rank that attaches has no access before resume(). The header outlives this.
  explicit PeerRelease(BoardHeader& header, LocalRank me)
      : poison_(header.poison), ack_(header.slot(me).poison_ack) {}

  /// No access until resume().
  void suspend() { ack_.store(1, std::memory_order_seq_cst); }

  /// False when a rank was lost: there is no access any more.
  bool resume() {
    if (ended_ || is_poisoned()) return end();
    // Take the acknowledgement back, then look at the poison; the others poison and then look for
    // the acknowledgement.
    ack_.store(0, std::memory_order_seq_cst);
    return is_poisoned() ? end() : true;
  }

  /// No access any more. Returns false.
  bool end() {
    ended_ = true;
    ack_.store(1, std::memory_order_seq_cst);
    return false;
  }

  /// end() was called, or resume() found a loss.
  bool ended() const { return ended_; }

  /// Suspends the access while it lives.
  class Pause {
   public:
    explicit Pause(PeerRelease& release) : release_(release) { release_.suspend(); }

    ~Pause() { release_.resume(); }

    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    PeerRelease& release_;
  };

 private:
  bool is_poisoned() const { return poison_.load(std::memory_order_seq_cst) != 0; }

  const std::atomic<std::uint64_t>& poison_;
  std::atomic<std::uint32_t>& ack_;
  bool ended_ = false;
};

}  // namespace horo::runtime
