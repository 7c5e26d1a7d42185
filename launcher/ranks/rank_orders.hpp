// SPDX-License-Identifier: Apache-2.0
// The orders of the launcher that concern the ranks only, and not their agent.
#pragma once

#include "launcher/protocol/protocol.hpp"
#include "launcher/questions.hpp"
#include "launcher/ranks/rank_set.hpp"

namespace horo::launcher {

// Each passes an order on to the ranks. They fail: protocol (nonsense, such as an order of an
// elastic job in one that is not).
Status carry_out(const protocol::FeedStdin& order, RankSet& ranks);
Status carry_out(const protocol::CloseStdin& order, RankSet& ranks);
Status carry_out(const protocol::OutputTaken& order, RankSet& ranks);
Status carry_out(const protocol::Spawn& order, RankSet& ranks);
Status carry_out(const protocol::EndWorker& order, RankSet& ranks);
Status carry_out(const protocol::PostNotice& order, RankSet& ranks);
Status carry_out(const protocol::Close& order, RankSet& ranks);
Status carry_out(const Look& question, RankSet& ranks);
Status carry_out(const Fetch& question, RankSet& ranks);

template <typename M>
concept RankOrder = requires(const M& order, RankSet& ranks) { carry_out(order, ranks); };

}  // namespace horo::launcher
