// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "base/process/kept_program.hpp"
#include "launcher/protocol/child_agents.hpp"
#include "launcher/starters/link/carrier.hpp"

namespace horo::launcher {

/// Makes the carrier to one host, as the Reach says. Fails: as that kind of carrier does.
using MakeCarrier = std::function<Result<std::unique_ptr<Carrier>>(const protocol::Reach&)>;

/// `ending`: where carriers leave their programs; null: they run none.
std::unique_ptr<ChildAgents> make_child_agents(Loop& loop, ChildAgents::ParentLink parent,
                                               MakeCarrier make,
                                               std::shared_ptr<EndingPrograms> ending = nullptr);

/// Reaches hosts by ssh from an agent: with the names of the Reach, and the keys of this host.
MakeChildAgents child_agents_by_ssh();

}  // namespace horo::launcher
