// SPDX-License-Identifier: Apache-2.0
// Runs one command to its end, its limit, or the user's signal.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "launcher/process/command.hpp"

namespace horo::apps {

/// SIGINT, SIGTERM, SIGTSTP, and SIGHUP unless it was ignored. They are blocked
/// from now on and come through a descriptor. Thread: the only one.
class UserSignals {
 public:
  /// Fails: io.
  static Result<UserSignals> block();

  int descriptor() const { return fd_.value(); }

  /// The next signal; 0: there is none.
  int take() const;

 private:
  explicit UserSignals(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

struct TrialProcess {
  launcher::Command command;
  std::string output;        ///< The file for its output; empty: this program's standard error.
  double limit_seconds = 0;  ///< Then the command is stopped.
  /// Asked five times a second with the seconds that have passed; true: stop the command.
  std::function<bool(double)> is_done;
};

struct TrialProcessEnd {
  launcher::ExitStatus status{0};
  double seconds = 0;
  bool was_done = false;  ///< `is_done` said so.
  bool timed_out = false;
  int signal = 0;  ///< The user's signal; 0: none.
};

/// The first signal of the user, the limit and `is_done` stop the command with SIGTERM, a second
/// signal is passed on, and Ctrl-Z stops both. The command ends with SIGTERM if this process is
/// killed. Blocks: until the command has ended. Fails: as spawn_process; io (the output).
Result<TrialProcessEnd> run_trial_process(const TrialProcess& process, const UserSignals& signals);

/// The last lines of a file, at most `most`. Blocks: for the file.
std::string last_lines(const std::string& path, std::size_t most);

}  // namespace horo::apps
