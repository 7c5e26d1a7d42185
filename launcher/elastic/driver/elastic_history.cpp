// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/elastic_history.hpp"

#include <algorithm>
#include <utility>

#include "launcher/job/describe.hpp"

namespace horo::launcher {

namespace {

constexpr std::size_t kMostNamed = 4;

/// The first few of the items, and the number of the others.
std::string list_some(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kMostNamed, items.size()); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", items[i]);
  if (items.size() > kMostNamed) text += fmt::format(" and {} more", items.size() - kMostNamed);
  return text;
}

std::string joined_text(const GenerationHistory& row) {
  std::vector<std::string> items;
  for (std::size_t rank = row.formed.survivors; rank < row.formed.members.size(); ++rank)
    items.push_back(
        fmt::format("worker {} on host {}", row.formed.members[rank].worker, row.hosts[rank]));
  return list_some(items);
}

std::string left_text(const GenerationHistory& row) {
  std::vector<std::string> items;
  for (std::size_t i = 0; i < row.formed.left.size(); ++i) {
    const auto& left = row.formed.left[i];
    items.push_back(
        fmt::format("worker {} on host {} ({})", left.worker, row.left_hosts[i], left.why));
  }
  return list_some(items);
}

}  // namespace

std::string describe_generation(const GenerationHistory& row) {
  const auto size = row.formed.members.size();
  auto text =
      fmt::format("generation {}: {} rank{}", row.formed.generation, size, size == 1 ? "" : "s");
  if (!row.formed.left.empty()) text += fmt::format(", without {}", left_text(row));
  if (row.formed.generation > 1 && row.formed.survivors < size)
    text += fmt::format(", with {}", joined_text(row));
  if (row.new_ranks_after)
    text += fmt::format("; new ranks after {}", describe(*row.new_ranks_after));
  return text;
}

std::string describe_resumed(const GenerationHistory& row) {
  const auto& resumed = *row.resumed;
  auto text = fmt::format("generation {}: training goes on after {}", row.formed.generation,
                          describe(resumed.stood_still));
  if (!resumed.repeated) return text;
  const auto steps = *resumed.repeated;
  if (steps == 0) return text + "; no step is repeated";
  return text + fmt::format("; {} step{} repeated", steps, steps == 1 ? " is" : "s are");
}

const GenerationHistory* ElasticHistory::note(const elastic::TrainingResumed& resumed) {
  if (generations_.empty()) return nullptr;
  auto& row = generations_.back();
  const bool is_first_rank = !row.formed.members.empty() &&
                             row.formed.members.front().worker == static_cast<int>(resumed.worker);
  if (row.formed.generation != resumed.generation || !is_first_rank || row.resumed) return nullptr;
  row.resumed = {.stood_still =
                     std::chrono::microseconds(static_cast<std::int64_t>(resumed.stood_still_us))};
  if (resumed.repeated >= 0) row.resumed->repeated = resumed.repeated;
  return &row;
}

void ElasticHistory::note(const MembershipState& state, const MembershipEvent& event,
                          TimePoint now) {
  if (const auto* started = std::get_if<WorkerStarted>(&event)) {
    if (const auto row = workers_.find(started->worker); row != workers_.end())
      row->second.started = now;
  } else if (const auto* failed = std::get_if<WorkerNotStarted>(&event)) {
    if (const auto row = workers_.find(failed->worker); row != workers_.end())
      row->second.lost = failed->error.message;
  } else if (const auto* ended = std::get_if<WorkerEnded>(&event)) {
    if (const auto row = workers_.find(ended->exit.rank.value()); row != workers_.end())
      row->second.exit = ended->exit;
  } else if (const auto* lost = std::get_if<AgentLost>(&event)) {
    note_lost(state, *lost);
  }
  note_orders(state, now);
}

void ElasticHistory::note_lost(const MembershipState& state, const AgentLost& lost) {
  if (!state.hosts.has(lost.host)) return;
  for (auto& [number, row] : workers_) {
    if (row.host == state.hosts.at(lost.host).name && !row.exit && row.lost.empty())
      row.lost = lost.error.message;
  }
}

void ElasticHistory::note_orders(const MembershipState& state, TimePoint now) {
  for (const auto& start : state.orders.start)
    workers_[start.worker] = {.host = state.hosts.at(start.host).name, .slot = start.slot};
  if (!state.orders.formed) return;
  GenerationHistory row{.formed = *state.orders.formed, .hosts = {}, .left_hosts = {}, .at = now};
  for (const auto& member : row.formed.members)
    row.hosts.push_back(state.hosts.at(member.host).name);
  for (const auto& left : row.formed.left) row.left_hosts.push_back(state.hosts.at(left.host).name);
  if (row.formed.since) row.new_ranks_after = now - *row.formed.since;
  generations_.push_back(std::move(row));
}

}  // namespace horo::launcher
