// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "base/loop/loop.hpp"

namespace horo::launcher {

/// One side's watch over the other: says something at each beat, and counts the beats at which
/// nothing had been heard. Beats, not time: a loop that was held up has missed them itself, and
/// finds what has arrived meanwhile before it counts again. Thread: the loop's.
class Pulse {
 public:
  /// `lost` is called once, after `limits` times `limit` of silence.
  Pulse(Loop& loop, Duration limit, int limits, Task say, Task lost)
      : loop_(loop),
        beat_(limit / kBeats),
        most_(kBeats * limits - 1),
        say_(std::move(say)),
        lost_(std::move(lost)) {
    wait();
  }

  void heard() { silent_ = 0; }

  /// The other side has announced to be silent, until it is heard again.
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
    say_();
    wait();
  }

  Loop& loop_;
  const Duration beat_;
  const int most_;
  Task say_;
  Task lost_;
  int silent_ = 0;
  bool excused_ = false;
  Subscription timer_;
};

}  // namespace horo::launcher
