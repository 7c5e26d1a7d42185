// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/loop/loop.hpp"

namespace horo::apps {

/// One line on a terminal that is written over again and again while hosts are being reached, and
/// gone before anything else is written. Thread: the loop's.
class Progress {
 public:
  /// Shows what `text` says from now on, once that has taken a moment; nothing where `fd` is no
  /// terminal. `loop` outlives this.
  Progress(Loop& loop, int fd, std::function<std::string()> text);

  ~Progress() { end(); }

  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Takes the line away for good.
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
