// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/loop/loop.hpp"
#include "launcher/starters/link/carrier.hpp"
#include "launcher/starters/link/resolver.hpp"
#include "launcher/starters/ssh/ssh_route.hpp"

namespace horo::launcher {

/// Carries an agent over one ssh connection of the library. All connections share the loop's
/// thread. The user is never asked: a connection that would need an answer is refused with an error
/// that says what to do. `resolver` outlives the carrier. Fails: not_found (no libssh).
Result<std::unique_ptr<Carrier>> make_ssh_carrier(Loop& loop, Resolver& resolver, SshRoute route,
                                                  std::string command_line);

}  // namespace horo::launcher
