// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/loop/loop.hpp"

namespace horo::apps {

/// One line on a terminal that shows progress: it is rewritten every half second, and erased before
/// anything else is written. Thread: the loop's.
class ProgressLine {
 public:
  /// Shows the result of `text` after the first half second. Shows nothing if `fd` is not a
  /// terminal. `loop` outlives this.
  ProgressLine(Loop& loop, int fd, std::function<std::string()> text);

  ~ProgressLine() { end(); }

  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Erases the line; it does not come back.
  void end();

 private:
  void show();
  void wait();

  Loop& loop_;
  const int fd_;
  std::function<std::string()> text_;
  Subscription timer_;
  bool shown_ = false;
};

}  // namespace horo::apps
