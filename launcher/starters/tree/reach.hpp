// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "launcher/protocol/protocol.hpp"
#include "launcher/starters/ssh/ssh_route.hpp"

namespace horo::launcher {

/// The order to another host's agent to start the agent on `route`'s host with `command_line`. A
/// file in this user's home means the file of that name in the home on the other host. The caller
/// fills in the host's number and the times.
protocol::Reach reach_by_ssh(const SshRoute& route, const SshWishes& wishes,
                             const std::string& command_line);

}  // namespace horo::launcher
