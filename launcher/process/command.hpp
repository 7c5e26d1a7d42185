// SPDX-License-Identifier: Apache-2.0
// What to execute, and how it ended.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "base/worker_env.hpp"

namespace horo::launcher {

enum class Input : std::uint8_t { none, pipe };  ///< none: /dev/null.

/// A descriptor of ours that a child gets as its number `to`.
struct Inherited {
  int from = -1;
  int to = -1;
};

struct Command {
  std::vector<std::string>
      arguments;            ///< The first is looked up in PATH of `environment` if it has no slash.
  Environment environment;  ///< All of it; a later entry of a name replaces an earlier one.
  std::string directory;    ///< Empty: ours.
  Input input = Input::none;
  /// Beyond these the child sees 0, 1 and 2 only; one that names 1 or 2 replaces that output's
  /// pipe.
  std::vector<Inherited> descriptors;
  int parent_death_signal = SIGKILL;       ///< 0: none.
  std::optional<rlimit> descriptor_limit;  ///< RLIMIT_NOFILE of the child; ours otherwise.
  std::vector<int> cpus;                   ///< Hardware threads it may run on; empty: ours.
};

/// A wait status, as from waitpid.
class ExitStatus {
 public:
  explicit ExitStatus(int wait_status) : status_(wait_status) {}

  int wait_status() const { return status_; }

  bool signalled() const;
  int code() const;    ///< Of exit; meaningless when signalled.
  int signal() const;  ///< 0 when it was not signalled.
  bool core_dumped() const;

  bool success() const { return status_ == 0; }

 private:
  int status_;
};

}  // namespace horo::launcher
