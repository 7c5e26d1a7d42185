// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "base/loop/loop.hpp"

namespace horo::launcher {

/// Sends a heartbeat to the other side at each beat, and counts the beats without a message from
/// there. Counting beats instead of time protects the other side when this loop is delayed: the
/// loop has missed those beats itself, and reads what has arrived before it counts the next one.
/// Thread: the loop's.
class HeartbeatTimer {
 public:
  /// Calls `lost` once, after `limits` times `limit` of silence.
  HeartbeatTimer(Loop& loop, Duration limit, int limits, Task send, Task lost)
      : loop_(loop),
        beat_(limit / kBeats),
        most_(kBeats * limits - 1),
        send_(std::move(send)),
        lost_(std::move(lost)) {
    wait();
  }

  void heard() { silent_ = 0; }

  /// While excused, silence does not count: the other side has announced it.
  void excuse(bool excused) {
    excused_ = excused;
    silent_ = 0;
  }

 private:
  static constexpr int kBeats = 6;

  void wait() {
    timer_ = loop_.after(beat_, [this] { beat(); });
  }

  void beat() {
    if (!excused_ && ++silent_ > most_) {
      const auto lost = std::move(lost_);
      return lost();
    }
    send_();
    wait();
  }

  Loop& loop_;
  const Duration beat_;
  const int most_;
  Task send_;
  Task lost_;
  int silent_ = 0;
  bool excused_ = false;
  Subscription timer_;
};

}  // namespace horo::launcher
