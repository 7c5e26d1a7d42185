// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "launcher/agent/protocol.hpp"
#include "launcher/starters/ssh/ssh_route.hpp"

namespace horo::launcher {

/// What another host's agent needs to start the one on `route`'s host with `command_line`. Files in
/// our home are that host's own files of those names; its number and times are the caller's to
/// fill.
protocol::Reach reach_by_ssh(const SshRoute& route, const SshWishes& wishes,
                             const std::string& command_line);

}  // namespace horo::launcher
