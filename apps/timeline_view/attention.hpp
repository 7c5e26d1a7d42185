// SPDX-License-Identifier: Apache-2.0
// What a program that shows something again and again waits for: time, a person, and the end of
// what it shows.
#pragma once

#include <csignal>
#include <memory>
#include <termios.h>
#include <vector>

#include "base/clock.hpp"
#include "base/unique_fd.hpp"

namespace horo::apps {

enum class Wake { due, quit, ended };

/// While it lives SIGINT, SIGTERM and SIGHUP are its own, and a terminal gives keys at once.
/// Thread: owner; one in a process.
class Attention {
 public:
  Attention();
  ~Attention();
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  /// Returns `most` from now, or earlier: a signal came or q was typed; all `processes` have become
  /// readable, which none of no processes ever does. Blocks.
  Wake wait(Duration most, std::vector<int> processes);

  /// That asked to quit; 0: it was a key.
  int signal() const { return signal_; }

 private:
  bool asked();

  sigset_t before_{};
  UniqueFd signals_;
  int signal_ = 0;
  bool keys_ = false;                  ///< A terminal is there to type at.
  std::unique_ptr<termios> terminal_;  ///< As it was.
};

/// The terminal's second screen, left as it was. Thread: owner.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  int width() const;
  int height() const;
};

}  // namespace horo::apps
