// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/loop/loop.hpp"
#include "launcher/starters/link/carrier.hpp"
#include "launcher/starters/link/resolver.hpp"
#include "launcher/starters/ssh/ssh_route.hpp"

namespace horo::launcher {

/// One ssh connection by the library, with one command on it. All of them share the loop's thread.
/// Nothing is ever asked of the user: what would need an answer is refused, with what to do.
/// `resolver` outlives the carrier. Fails: not_found (no libssh).
Result<std::unique_ptr<Carrier>> make_ssh_carrier(Loop& loop, Resolver& resolver, SshRoute route,
                                                  std::string command_line);

}  // namespace horo::launcher
