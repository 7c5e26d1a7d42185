// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/elastic_agents.hpp"

#include <algorithm>
#include <utility>

#include "launcher/elastic/driver/call_answers.hpp"
#include "launcher/protocol/own_address.hpp"

namespace horo::launcher {

using Stage = ElasticAgent::Stage;

ElasticAgents::ElasticAgents(Loop& loop, MembershipStore& store, PlanHost plan,
                             ElasticAgentHooks hooks, Options options)
    : loop_(loop),
      store_(store),
      plan_(std::move(plan)),
      options_(options),
      hooks_(std::move(hooks)) {
  hooks_.on_ready = [this](std::size_t, const HostFacts& facts) {
    if (own_address_.empty()) own_address_ = facts.launcher_address;
    begin_ready_ones();
  };
  hooks_.on_gone = [this](std::size_t) { begin_ready_ones(); };
}

void ElasticAgents::spawn(const StartWorker& worker, const ElasticHost& host) {
  if (agents_.size() <= worker.host) {
    agents_.resize(worker.host + 1);
    rooms_.resize(worker.host + 1);
  }
  auto& agent = agents_[worker.host];
  if (agent == nullptr)
    agent = std::make_unique<ElasticAgent>(loop_, hooks_, worker.host, options_.times);
  hosts_[worker.worker] = worker.host;
  if (agent->stage() == Stage::none) {
    rooms_[worker.host] = worker_room(std::max(host.slots, host.most_slots));
    const int number = agent->await_plan();
    plan_(host, [this, agent = agent.get(), number, room = rooms_[worker.host],
                 alive = std::weak_ptr(alive_)](Result<ElasticHostPlan> plan) {
      if (!alive.lock()) return;
      if (plan) {
        plan->spec.elastic = plan->spec.held = true;
        plan->spec.slots = static_cast<std::uint32_t>(room);
        plan->spec.term_grace = options_.times.term_grace;
      }
      agent->start(number, std::move(plan));
    });
  }
  agent->spawn(worker);
}

ElasticAgent* ElasticAgents::of_worker(int worker) const {
  const auto found = hosts_.find(worker);
  return found == hosts_.end() ? nullptr : agents_[found->second].get();
}

void ElasticAgents::each(const std::function<void(ElasticAgent&)>& task) const {
  for (const auto& agent : agents_) {
    if (agent != nullptr) task(*agent);
  }
}

/// This machine's workers wait until it is known by which address other hosts reach it.
void ElasticAgents::begin_ready_ones() {
  const bool wait = own_address_.empty() && std::ranges::any_of(agents_, [](const auto& agent) {
                      return agent != nullptr && agent->may_come_from_elsewhere();
                    });
  // An agent that cannot begin is lost, and workers may be ordered on further hosts in its place.
  for (std::size_t host = 0; host < agents_.size(); ++host) {
    auto* const agent = agents_[host].get();
    if (agent == nullptr || agent->stage() != Stage::ready) continue;
    const bool is_elsewhere = !agent->facts().launcher_address.empty();
    if (is_elsewhere || !wait) begin(*agent);
  }
}

std::string ElasticAgents::address_for(const HostFacts& facts) const {
  if (!facts.launcher_address.empty()) return facts.launcher_address;
  if (!own_address_.empty() || !options_.others_may_come) return own_address_;
  const auto towards_others = own_address_towards(kNoHostAddress);
  return towards_others ? *towards_others : any_own_address();
}

void ElasticAgents::begin(ElasticAgent& agent) {
  const auto store = store_.address_at(address_for(agent.facts()));
  if (!store) return agent.fail_begin(store.error());
  agent.begin(*store);
}

void ElasticAgents::end_worker(int worker) {
  if (auto* agent = of_worker(worker)) agent->end_worker(worker);
}

void ElasticAgents::close(std::size_t host) {
  if (host < agents_.size() && agents_[host] != nullptr) agents_[host]->close();
}

void ElasticAgents::notice(const Notice& notice) {
  each([&](ElasticAgent& agent) { agent.notice(notice); });
}

void ElasticAgents::answer(const FormedGeneration& generation) {
  for (auto& [host, answers] : answers_of(generation)) agents_[host]->answer(std::move(answers));
}

void ElasticAgents::turn_away(const TurnedAway& worker, elastic::MembershipKind kind) const {
  if (auto* agent = of_worker(worker.worker)) agent->answer({answer_of(worker, kind)});
}

void ElasticAgents::end_meeting(std::uint64_t generation) {
  each([&](ElasticAgent& agent) { agent.end_meeting(generation); });
}

void ElasticAgents::suspend() {
  each([](ElasticAgent& agent) { agent.suspend(); });
}

void ElasticAgents::resume() {
  each([](ElasticAgent& agent) { agent.resume(); });
}

void ElasticAgents::signal(int number) {
  each([&](ElasticAgent& agent) { agent.signal(number); });
}

void ElasticAgents::stop(const Poison& cause, const std::string& host) {
  each([&](ElasticAgent& agent) { agent.stop(cause, host); });
}

void ElasticAgents::kill() {
  each([](ElasticAgent& agent) { agent.kill(); });
}

void ElasticAgents::output_taken(Rank worker, std::size_t bytes) {
  if (auto* agent = of_worker(worker.value())) agent->output_taken(worker, bytes);
}

bool ElasticAgents::ask(std::size_t host, const Question& question) const {
  return host < agents_.size() && agents_[host] != nullptr && agents_[host]->ask(question);
}

std::optional<int> ElasticAgents::room_of(std::size_t host) const {
  if (host >= agents_.size() || agents_[host] == nullptr || agents_[host]->stage() == Stage::none)
    return std::nullopt;
  return rooms_[host];
}

}  // namespace horo::launcher
