// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/rank_orders.hpp"

namespace horo::launcher {

namespace {

Status check_is_elastic(const RankSet& ranks, const AgentMessageRow& order) {
  if (ranks.is_elastic()) return {};
  return fail(Errc::protocol, "the launcher sent '{}', but the job is not elastic", order.name);
}

}  // namespace

Status carry_out(const protocol::FeedStdin& order, RankSet& ranks) {
  ranks.feed_stdin(order.bytes);
  return {};
}

Status carry_out(const protocol::CloseStdin& /*order*/, RankSet& ranks) {
  ranks.close_stdin();
  return {};
}

Status carry_out(const protocol::OutputTaken& order, RankSet& ranks) {
  ranks.output_taken(order.rank, order.bytes);
  return {};
}

Status carry_out(const protocol::Spawn& order, RankSet& ranks) {
  HORO_TRY_STATUS(check_is_elastic(ranks, order.kRow));
  return ranks.spawn(order.workers);
}

Status carry_out(const protocol::EndWorker& order, RankSet& ranks) {
  HORO_TRY_STATUS(check_is_elastic(ranks, order.kRow));
  ranks.end_worker(order.worker);
  return {};
}

Status carry_out(const protocol::PostNotice& order, RankSet& ranks) {
  HORO_TRY_STATUS(check_is_elastic(ranks, order.kRow));
  ranks.notify(order.notice);
  return {};
}

Status carry_out(const protocol::Close& order, RankSet& ranks) {
  HORO_TRY_STATUS(check_is_elastic(ranks, order.kRow));
  ranks.close();
  return {};
}

Status carry_out(const Look& question, RankSet& ranks) {
  ranks.ask(question);
  return {};
}

Status carry_out(const Fetch& question, RankSet& ranks) {
  ranks.ask(question);
  return {};
}

}  // namespace horo::launcher
