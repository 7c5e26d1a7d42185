// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/tree_link.hpp"

namespace horo::runtime {

namespace {

/// Entries that every host of the job has room for.
tree::CutRules rules_for(const BoardParams& params) {
  tree::CutRules rules{.fusion_threshold = params.tuning.fusion_threshold,
                       .depth = params.depth,
                       .most_names = params.capacity,
                       .cycle = Duration(params.tuning.cycle_ns)};
  auto alone = params;  // A set with few members on a host has the least room.
  alone.local_size = 1;
  const auto words = BoardLayout::of(alone, false).word_count;
  rules.most_words = words / (std::uint64_t{2} * params.depth);
  rules.most_tensors = rules.most_words / (1 + kSignatureWords);
  return rules;
}

}  // namespace

Status TreeLink::start(const bootstrap::Meeting& meeting, tree::TreeOptions options,
                       const Deadline& deadline) {
  options.rules = rules_for(memory_.params());
  const auto ranks = static_cast<std::size_t>(meeting.identity.size);
  if (options.rules.most_words <= ranks) {
    return fail(Errc::invalid_argument,
                "a board for {} tensors has no room for the row counts of {} ranks; raise "
                "HORO_CACHE_CAPACITY",
                memory_.params().capacity, ranks);
  }
  HORO_TRY(service_, tree::start_leader_service(meeting, options, state_, deadline,
                                                [this] { return has_loss(); }));
  return {};
}

void TreeLink::lead(SetId set, std::span<const Rank> ranks, Board* board) {
  tree::RankRanges members;
  for (const auto rank : ranks) members.add(rank);
  auto& log = logs_[set];
  if (board != nullptr) log = std::make_unique<tree::BoardLog>(*board);
  service_->add_set(set, members, log.get());
}

void TreeLink::forget(SetId set) {
  service_->remove_set(set);
  logs_.erase(set);
}

void TreeLink::look() {
  if (service_ != nullptr) service_->poke();
}

void TreeLink::look_soon(Duration delay) {
  service_->poke_soon(delay);
}

void TreeLink::leave() {
  if (service_ != nullptr) service_->leave();
}

}  // namespace horo::runtime
