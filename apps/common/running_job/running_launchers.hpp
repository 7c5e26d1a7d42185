// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace horo::apps {

/// A `horo run` on this machine, known by the name of the socket at which it answers viewers.
struct RunningLauncher {
  std::string socket;
  uid_t user = 0;
  int pid = 0;
  std::string job;
};

/// Splits "horo-job/1000/4711/41f0a2c3d4e5". None where the name is not a launcher's. Pure.
std::optional<RunningLauncher> parse_launcher(std::string_view socket);

/// The launchers of all users. Blocks: for /proc.
std::vector<RunningLauncher> running_launchers();

}  // namespace horo::apps
