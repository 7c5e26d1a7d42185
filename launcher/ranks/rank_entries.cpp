// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/rank_entries.hpp"

#include <algorithm>

namespace horo::launcher {

namespace {

/// The launcher tells a worker its place among the others when a generation begins. The place that
/// was planned before need not fit the planned sizes, but programs rely on that.
void describe_worker(RankEntry& entry) {
  auto& identity = entry.identity;
  if (identity.board_slot >= 0) entry.part = identity.board_slot;
  identity.elastic = true;
  identity.worker = entry.number.value();
  identity.board_slot = entry.slot.value();
  identity.size = std::max(identity.size, identity.rank.value() + 1);
  identity.local_size = std::max(identity.local_size, identity.local_rank.value() + 1);
}

}  // namespace

RankEntries::RankEntries(const AgentSpec& spec)
    : window_(spec.output_window), elastic_(spec.elastic) {
  entries_.reserve(static_cast<std::size_t>(spec.places()));
  for (int slot = 0; slot < spec.places(); ++slot) entries_.emplace_back(LocalRank{slot}, window_);
}

Result<RankEntry*> RankEntries::add(const WorkerIdentity& identity) {
  const Rank number = number_of(identity);
  if (find(number) != nullptr)
    return fail(Errc::protocol, "the launcher gave worker {}, which this host has already", number);
  const auto free = std::ranges::find(entries_, RankEntry::Life::ended, &RankEntry::life);
  if (free == entries_.end()) {
    return fail(Errc::protocol,
                "the launcher gave worker {}, but all {} slots of this host are used", number,
                entries_.size());
  }
  free->number = number;
  free->identity = identity;
  free->part = identity.local_rank.value();
  if (elastic_) describe_worker(*free);
  free->window = RankOutputWindow(window_);
  free->life = RankEntry::Life::waiting;
  free->group.reset();
  waiting_.push_back(&*free);
  return &*free;
}

RankEntry& RankEntries::take_next() {
  auto& next = *waiting_.front();
  waiting_.pop_front();
  return next;
}

bool RankEntries::cancel(Rank number) {
  const auto found = std::ranges::find_if(
      waiting_, [number](const RankEntry* entry) { return entry->number == number; });
  if (found == waiting_.end()) return false;
  (*found)->life = RankEntry::Life::ended;
  waiting_.erase(found);
  return true;
}

std::vector<RankEntry*> RankEntries::living() {
  std::vector<RankEntry*> list;
  for (auto& entry : entries_) {
    if (entry.is_alive()) list.push_back(&entry);
  }
  return list;
}

RankEntry* RankEntries::find(Rank number) {
  const auto found = std::ranges::find_if(entries_, [number](const RankEntry& entry) {
    return entry.life != RankEntry::Life::ended && entry.number == number;
  });
  return found == entries_.end() ? nullptr : &*found;
}

}  // namespace horo::launcher
