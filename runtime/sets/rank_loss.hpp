// SPDX-License-Identifier: Apache-2.0
// What this rank does once its host's board is poisoned, or its connections break.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "base/board_header.hpp"
#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/result.hpp"
#include "runtime/host/host_memory.hpp"

namespace horo::runtime {

/// Owns the steps from the poison to the end of this rank's operations:
///
///     healthy --is_poisoned--> buckets dropped --acknowledge--> acknowledged
///             --all_acknowledged--> operations failed --end--> lost
///
/// Buffers go back to the user only when no peer can touch them any more. Thread: the holder of the
/// progress token, except for what says otherwise.
class RankLoss {
 public:
  /// Both outlive this. `release_timeout`: after so long, ranks that have not acknowledged a loss
  /// are killed.
  RankLoss(HostMemory& host, const Clock& clock, Duration release_timeout)
      : host_(host), clock_(clock), release_timeout_(release_timeout) {}

  /// `tell` is called with a rank that has ended, before the operations of this rank end.
  void on_loss(std::function<void(Rank)> tell) { tell_ = std::move(tell); }

  /// Thread: any.
  bool is_poisoned() const { return poison_of(*host_.board()).cause != LossCause::none; }

  bool acknowledged() const { return acknowledged_; }

  /// This rank touches no peer's memory any more.
  void acknowledge();

  /// No rank of this host touches a peer's memory any more. Ends ranks that have not said so in
  /// time.
  bool all_acknowledged();

  /// All operations of this rank have ended.
  void end() { lost_.store(true, std::memory_order_seq_cst); }

  /// end() was called: nothing moves any more. Thread: any.
  bool lost() const { return lost_.load(std::memory_order_seq_cst); }

  /// Which rank was lost and how. Thread: any.
  Error error() const;

  /// The connections of a set are broken, or this rank's device. If no agent or leader says soon
  /// which rank was lost, this rank declares itself lost for that cause; `own_host`: its host's
  /// name.
  void note_breakdown(SetId set, const Error& why, LossCause cause, const std::string& own_host);

  /// This rank was lost first, because its device has failed. Thread: any.
  bool own_device_failed() const;

  /// Before acknowledge(): if another rank was cut off, says why the connections of this rank
  /// broke. The first rank to declare itself lost may only have seen that the others hung up.
  void tell_breakdown() const;

  /// note_breakdown() was called.
  bool broken() const { return !cut_off_.is_never(); }

 private:
  HostMemory& host_;
  const Clock& clock_;
  const Duration release_timeout_;
  std::function<void(Rank)> tell_;        ///< Empty: there is nobody to tell.
  Deadline cut_off_ = Deadline::never();  ///< When this rank declares itself lost ...
  LossCause cause_ = LossCause::cut_off;  ///< ... for this.
  std::string breakdown_;                 ///< Why it does; empty: its connections are sound.
  bool acknowledged_ = false;
  TimePoint end_silent_at_{};
  std::atomic<bool> lost_{false};
};

}  // namespace horo::runtime
