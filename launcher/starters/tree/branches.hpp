// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "launcher/agent/branches.hpp"
#include "launcher/starters/link/carrier.hpp"

namespace horo::launcher {

/// How one host is reached from here. Fails: as the way's carrier does.
using MakeCarrier = std::function<Result<std::unique_ptr<Carrier>>(const protocol::Reach&)>;

std::unique_ptr<Branches> make_branches(Loop& loop, Branches::Trunk trunk, MakeCarrier make);

/// By ssh, as an agent does it: with the names of `Reach`, and this host's own keys.
MakeBranches branches_by_ssh();

}  // namespace horo::launcher
