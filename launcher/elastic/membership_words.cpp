// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/membership_words.hpp"

#include <algorithm>

#include "launcher/elastic/membership_losses.hpp"
#include "launcher/job/describe.hpp"

namespace horo::launcher {

namespace {

constexpr std::size_t kMostNamed = 8;

std::string list(const std::vector<std::string>& items, const char* separator) {
  std::string text;
  for (std::size_t i = 0; i < items.size() && i < kMostNamed; ++i)
    text += (i == 0 ? "" : separator) + items[i];
  if (items.size() > kMostNamed)
    text += fmt::format("{}{} more", separator, items.size() - kMostNamed);
  return text;
}

std::vector<const ElasticWorker*> select(const MembershipState& state,
                                         bool (*wanted)(const ElasticWorker&)) {
  std::vector<const ElasticWorker*> found;
  for (const auto& worker : state.workers.all()) {
    if (worker.living() && wanted(worker)) found.push_back(&worker);
  }
  return found;
}

std::string left_until(std::optional<TimePoint> deadline, TimePoint now) {
  if (!deadline) return "";
  return fmt::format("; {} are left", describe(std::max(Duration{}, *deadline - now)));
}

std::string waiting_in_round(const MembershipState& state, TimePoint now) {
  const auto members =
      select(state, [](const auto& worker) { return worker.phase == WorkerPhase::member; });
  if (!members.empty()) {
    std::optional<TimePoint> due;
    for (const auto* member : members) due = std::max(due, member->due);
    return fmt::format("waiting for {} to call{}", describe_workers(state, members),
                       left_until(due, now));
  }
  const auto starting = select(state, [](const auto& worker) { return worker.awaited(); });
  const bool gathers = state.phase == MembershipPhase::gathering;
  if (!starting.empty()) {
    const auto deadline =
        gathers && now < state.round.all_by ? state.round.all_by : state.round.enough_by;
    return fmt::format("waiting for {} to start{}", describe_workers(state, starting),
                       left_until(deadline, now));
  }
  return fmt::format("waiting for more workers: {}{}", describe_shortage(state),
                     left_until(state.round.enough_by, now));
}

}  // namespace

std::string count(int number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string describe_offer(const MembershipState& state) {
  std::vector<std::string> hosts;
  for (const auto host : state.hosts.by_age()) {
    hosts.push_back(fmt::format("{}:{}", state.hosts.at(host).name, state.hosts.at(host).room()));
  }
  const int room = state.hosts.room();
  auto text = hosts.empty() ? "no slots are offered"
                            : fmt::format("{} {} offered ({})", count(room, "slot"),
                                          room == 1 ? "is" : "are", list(hosts, ", "));
  const auto out = describe_hosts_out(state);
  return out.empty() ? text : fmt::format("{}; not used: {}", text, out);
}

std::string describe_hosts_out(const MembershipState& state) {
  std::vector<std::string> hosts;
  for (const auto& host : state.hosts.all()) {
    if (host.use != HostUse::usable)
      hosts.push_back(fmt::format("host {} ({})", host.name, host.why));
  }
  return list(hosts, ", ");
}

std::string describe_workers(const MembershipState& state,
                             const std::vector<const ElasticWorker*>& workers) {
  std::vector<std::string> names;
  names.reserve(workers.size());
  for (const auto* worker : workers) names.push_back(named(state, *worker));
  return list(names, ", ");
}

std::string describe_shortage(const MembershipState& state) {
  const auto ready = select(state, [](const auto& worker) {
    return worker.phase == WorkerPhase::called && worker.leave != LeaveCause::host_going;
  });
  return fmt::format("{} of the {} that --min-np asks for {} ready, and {}", ready.size(),
                     count(state.rules.min_np, "worker"), ready.size() == 1 ? "is" : "are",
                     describe_offer(state));
}

std::string waiting_for(const MembershipState& state, TimePoint now) {
  switch (state.phase) {
    case MembershipPhase::seeking:
      return fmt::format("waiting for {}: {}{}", count(state.rules.np, "slot"),
                         describe_offer(state), left_until(state.round.enough_by, now));
    case MembershipPhase::gathering:
    case MembershipPhase::regrouping:
      return waiting_in_round(state, now);
    case MembershipPhase::ending:
    case MembershipPhase::stopping: {
      const auto living = select(state, [](const auto&) { return true; });
      if (living.empty()) return "waiting for the agents to end" + left_until(state.stop_by, now);
      return fmt::format("waiting for {} to end{}", describe_workers(state, living),
                         left_until(state.stop_by, now));
    }
    case MembershipPhase::running:
    case MembershipPhase::finished:
      break;
  }
  return "";
}

}  // namespace horo::launcher
