// SPDX-License-Identifier: Apache-2.0
// A command to execute, and its exit status.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "base/worker_env.hpp"

namespace horo::launcher {

enum class Input : std::uint8_t { none, pipe };  ///< none: /dev/null.

/// A descriptor of this process that a child gets as number `to`.
struct Inherited {
  int from = -1;
  int to = -1;
};

struct Command {
  std::vector<std::string>
      arguments;            ///< The first is looked up in PATH of `environment` if it has no slash.
  Environment environment;  ///< The whole environment; later entries replace earlier ones.
  std::string directory;    ///< Empty: this process's.
  Input input = Input::none;
  /// The child has these, 0, 1 and 2 only. An entry for 1 or 2 replaces the pipe of that output.
  std::vector<Inherited> descriptors;
  int parent_death_signal = SIGKILL;       ///< 0: none.
  std::optional<rlimit> descriptor_limit;  ///< RLIMIT_NOFILE; nullopt: this process's.
  std::vector<int> cpus;                   ///< Hardware threads; empty: this process's.
};

/// A wait status, as from waitpid.
class ExitStatus {
 public:
  explicit ExitStatus(int wait_status) : status_(wait_status) {}

  int wait_status() const { return status_; }

  bool signalled() const;
  int code() const;    ///< The exit code; meaningless when signalled.
  int signal() const;  ///< 0 when it was not signalled.
  bool core_dumped() const;

  bool success() const { return status_ == 0; }

 private:
  int status_;
};

}  // namespace horo::launcher
