// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/monitored_elastic_job.hpp"

#include <algorithm>
#include <utility>

namespace horo::launcher {

namespace {

using timeline::LiveHost;
using timeline::LiveHostUse;

LiveHostUse use_of(const ElasticHost& host) {
  switch (host.use) {
    case HostUse::put_aside:
      return LiveHostUse::put_aside;
    case HostUse::leaving:
      return LiveHostUse::leaving;
    case HostUse::usable:
      break;
  }
  return host.slots == 0 ? LiveHostUse::gone : LiveHostUse::used;
}

LiveHost describe_host(const MembershipState& state, std::size_t index, TimePoint now) {
  const auto& host = state.hosts.at(index);
  LiveHost row{.name = host.name, .slots = host.slots, .use = use_of(host), .why = host.why};
  if (row.use == LiveHostUse::gone) row.why = "it is no longer offered";
  for (const auto& worker : state.workers.all()) {
    if (worker.host != index || !worker.living()) continue;
    ++row.processes;
    if (worker.rank) ++row.ranks;
  }
  // The time to leave is of no interest when nothing is left.
  const auto until =
      host.use == HostUse::put_aside || row.processes == 0 ? host.back_at : host.leave_by;
  if (until) row.for_ns = std::max(Duration::zero(), *until - now).count();
  return row;
}

class ElasticJob final : public MonitoredJob {
 public:
  ElasticJob(ElasticDriver& driver, std::string job_id)
      : driver_(driver), job_id_(std::move(job_id)) {}

  ~ElasticJob() override { driver_.on_answer({}); }

  ElasticJob(const ElasticJob&) = delete;
  ElasticJob& operator=(const ElasticJob&) = delete;

  protocol::Roster roster() const override {
    protocol::Roster roster{.job = job_id_, .elastic = true, .agents = {}};
    for (const auto& host : driver_.state().hosts.all())
      roster.agents.push_back({.host = host.name, .ranks = {}});
    for (const auto& worker : driver_.state().workers.all()) {
      if (worker.rank && worker.living()) roster.agents[worker.host].ranks.push_back(*worker.rank);
    }
    for (auto& agent : roster.agents) std::ranges::sort(agent.ranks);
    return roster;
  }

  bool ask(std::size_t agent, const Question& question) override {
    return driver_.ask(agent, question);
  }

  bool is_over(std::size_t agent) const override {
    return driver_.state().hosts.at(agent).agent == AgentPhase::none;
  }

  void on_answer(AnswerHandler handler) override { driver_.on_answer(std::move(handler)); }

  std::optional<Members> members() const override {
    return Members{describe_members(driver_.state(), SteadyClock::instance().now())};
  }

  Resized resize(const Resize& wish) override { return driver_.resize(wish); }

 private:
  ElasticDriver& driver_;
  const std::string job_id_;
};

}  // namespace

timeline::LiveMembership describe_members(const MembershipState& state, TimePoint now) {
  timeline::LiveMembership members{
      .generation = state.generation,
      .min_np = state.rules.min_np,
      .max_np = state.rules.max_np == kMaxRanks ? 0 : state.rules.max_np,
      .wanted_spares = state.rules.spares,
      .state = waiting_for(state, now)};
  if (members.state.empty()) members.state = "running";
  for (const auto& worker : state.workers.all()) {
    if (worker.rank) ++members.ranks;
    if (worker.awaited()) ++members.starting;
    if (!worker.rank && worker.phase == WorkerPhase::called) ++members.spares;
  }
  const auto& hosts = state.hosts.all();
  for (std::size_t i = 0; i < hosts.size(); ++i)
    members.hosts.push_back(describe_host(state, i, now));
  return members;
}

std::unique_ptr<MonitoredJob> monitored(ElasticDriver& driver, std::string job_id) {
  return std::make_unique<ElasticJob>(driver, std::move(job_id));
}

}  // namespace horo::launcher
