// SPDX-License-Identifier: Apache-2.0
// For programs that refresh a view: waits for the next refresh, a key, a signal, or the end of what
// is shown.
#pragma once

#include <csignal>
#include <memory>
#include <termios.h>
#include <vector>

#include "base/clock.hpp"
#include "base/unique_fd.hpp"

namespace horo::apps {

enum class WakeReason { due, quit, ended };

/// While the object exists, it receives SIGINT, SIGTERM and SIGHUP, and a terminal delivers each
/// key at once. Thread: owner; one object in a process.
class TerminalSession {
 public:
  TerminalSession();
  ~TerminalSession();
  TerminalSession(const TerminalSession&) = delete;
  TerminalSession& operator=(const TerminalSession&) = delete;

  /// Waits for `most`, or until a signal comes, q is typed, or all `processes` have become
  /// readable. An empty list of processes never ends the wait. Blocks.
  WakeReason wait(Duration most, std::vector<int> processes);

  /// The signal that asked to quit; 0: a key did.
  int signal() const { return signal_; }

 private:
  bool quit_requested();

  sigset_t before_{};
  UniqueFd signals_;
  int signal_ = 0;
  bool keys_ = false;                  ///< Keys can be read from a terminal.
  std::unique_ptr<termios> terminal_;  ///< The terminal's settings before; restored at the end.
};

/// Uses the terminal's alternate screen while the object exists. Thread: owner.
class AlternateScreen {
 public:
  AlternateScreen();
  ~AlternateScreen();
  AlternateScreen(const AlternateScreen&) = delete;
  AlternateScreen& operator=(const AlternateScreen&) = delete;

  int width() const;
  int height() const;
};

}  // namespace horo::apps
