// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace horo::apps {

/// A `horo run` on this machine, by the name of the socket at which it can be asked.
struct RunningLauncher {
  std::string socket;
  uid_t user = 0;
  int pid = 0;
  std::string job;
};

/// "horo-job/1000/4711/41f0a2c3d4e5" in its parts; none: it is another's. Pure.
std::optional<RunningLauncher> parse_launcher(std::string_view socket);

/// Of all users. Blocks: for /proc.
std::vector<RunningLauncher> running_launchers();

}  // namespace horo::apps
