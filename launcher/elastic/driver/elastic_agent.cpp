// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/elastic_agent.hpp"

#include <algorithm>
#include <utility>

#include "launcher/job/describe.hpp"

namespace horo::launcher {

namespace {

constexpr const char* kGlooInterface = "GLOO_SOCKET_IFNAME";
constexpr int kLeastSpareRoom = 16;

Error cancelled() {
  return {.code = Errc::cancelled, .message = "it was to end before it had started"};
}

bool sets(const Environment& environment, std::string_view name) {
  return std::any_of(environment.begin(), environment.end(),
                     [name](const auto& variable) { return variable.first == name; });
}

}  // namespace

int worker_room(int slots) {
  return std::min(kMaxLocalRanks, std::max(2 * slots, slots + kLeastSpareRoom));
}

std::string ElasticAgent::step() const {
  if (stage_ == Stage::planning) return "looking for a way to reach it";
  return stage_ == Stage::starting ? agent_->step() : std::string();
}

int ElasticAgent::await_plan() {
  stage_ = Stage::planning;
  start_left_ = times_.start;
  run_start_limit();
  return ++plan_number_;
}

void ElasticAgent::run_start_limit() {
  start_limit_set_ = SteadyClock::instance().now();
  start_limit_ = loop_.after(start_left_, [this] { give_up_start(); });
}

void ElasticAgent::suspend() {
  if (!start_limit_) return;
  start_limit_.reset();
  const auto passed = SteadyClock::instance().now() - start_limit_set_;
  start_left_ = std::max(Duration::zero(), start_left_ - passed);
}

void ElasticAgent::resume() {
  if (stage_ == Stage::planning || stage_ == Stage::starting) run_start_limit();
}

void ElasticAgent::give_up_start() {
  if (stage_ != Stage::planning && stage_ != Stage::starting) return;
  const Error late{.code = Errc::timed_out,
                   .message = fmt::format("its agent was not ready within --start-timeout {}: {}",
                                          describe(times_.start), step())};
  if (stage_ == Stage::starting) agent_->kill();
  leave(AgentLost{host_, late});
}

void ElasticAgent::start(int number, Result<ElasticHostPlan> plan) {
  if (stage_ != Stage::planning || number != plan_number_) return;
  if (!plan) return leave(AgentLost{host_, std::move(plan).error()});
  agent_.reset();
  plan_.emplace(std::move(*plan));
  auto agent = plan_->starter->start(plan_->spec, *this);
  if (!agent) return leave(AgentLost{host_, std::move(agent).error()});
  agent_ = std::move(*agent);
  stage_ = Stage::starting;
  if (notice_) agent_->notice(notice_->sequence, notice_->flags);
}

void ElasticAgent::begin(const std::string& store) {
  if (stage_ != Stage::ready) return;
  plan_->worker.rendezvous = store;
  auto& spec = plan_->spec;
  const bool chosen =
      sets(spec.environment, kGlooInterface) || (spec.common && sets(*spec.common, kGlooInterface));
  if (!facts_.interface.empty() && !chosen)
    spec.environment.emplace_back(kGlooInterface, facts_.interface);
  stage_ = Stage::running;
  agent_->begin(spec);
  for (const auto& worker : std::exchange(queued_, {})) spawn(worker);
}

void ElasticAgent::fail_begin(const Error& error) {
  if (stage_ != Stage::ready) return;
  agent_->kill();
  leave(AgentLost{host_, error});
}

WorkerIdentity ElasticAgent::identity_of(const StartWorker& worker) const {
  auto identity = plan_->worker;
  const auto& planned = worker.planned;
  identity.rank = planned.rank;
  identity.size = worker.planned_size;
  identity.local_rank = planned.local_rank;
  identity.local_size = planned.local_size;
  identity.cross_rank = planned.cross_rank;
  identity.cross_size = planned.cross_size;
  identity.host_index = static_cast<int>(planned.host);
  identity.elastic = true;
  identity.worker = worker.worker;
  identity.board_slot = worker.slot;
  identity.joins = worker.joins;
  return identity;
}

void ElasticAgent::spawn(const StartWorker& worker) {
  if (stage_ < Stage::running && stage_ != Stage::none) return queued_.push_back(worker);
  if (stage_ != Stage::running) {
    return tell_later(WorkerNotStarted{
        worker.worker, {.code = Errc::unavailable, .message = "its host's agent is ending"}});
  }
  living_.insert(worker.worker);
  agent_->spawn({identity_of(worker)});
}

bool ElasticAgent::forget_queued(int worker) {
  return std::erase_if(queued_,
                       [worker](const StartWorker& one) { return one.worker == worker; }) != 0;
}

void ElasticAgent::end_worker(int worker) {
  if (forget_queued(worker)) return tell_later(WorkerNotStarted{worker, cancelled()});
  if (has_agent()) agent_->end_worker(Rank{worker});
}

void ElasticAgent::notice(const Notice& notice) {
  notice_ = notice;
  if (has_agent()) agent_->notice(notice.sequence, notice.flags);
}

void ElasticAgent::answer(std::vector<elastic::CallAnswer> answers) {
  if (has_agent()) agent_->answer(std::move(answers));
}

void ElasticAgent::end_meeting(std::uint64_t generation) {
  if (has_agent()) agent_->end_meeting(generation);
}

void ElasticAgent::close() {
  if (stage_ == Stage::planning) return give_up_plan();
  if (stage_ == Stage::running) {
    agent_->close();
    stage_ = Stage::ending;
    close_limit_ = loop_.after(times_.close, [this] { give_up_close(); });
  } else if (has_agent() && stage_ != Stage::ending) {
    stop({.cause = LossCause::aborted}, {});
  }
}

/// The connection of this machine's agent would not tell that it hangs: it has no heartbeat.
void ElasticAgent::give_up_close() {
  if (stage_ != Stage::ending) return;
  hooks_.on_note(host_, fmt::format("its agent did not end within {} after its last worker, and "
                                    "is killed",
                                    describe(times_.close)));
  agent_->kill();
  leave(AgentClosed{host_});
}

void ElasticAgent::stop(const Poison& cause, const std::string& host) {
  if (stage_ == Stage::planning) return give_up_plan();
  if (!has_agent()) return;
  stage_ = Stage::ending;
  close_limit_.reset();
  agent_->stop(cause, host);
}

void ElasticAgent::kill() {
  if (stage_ == Stage::planning) return give_up_plan();
  if (!has_agent()) return;
  stage_ = Stage::ending;
  close_limit_.reset();
  agent_->kill();
}

void ElasticAgent::signal(int number) {
  if (has_agent()) agent_->signal(number);
}

void ElasticAgent::output_taken(Rank worker, std::size_t bytes) {
  if (has_agent()) agent_->output_taken(worker, bytes);
}

bool ElasticAgent::ask(const Question& question) {
  return stage_ >= Stage::running && agent_->ask(0, question);
}

/// The answer about the plan will come too late. Other agents may have waited for this one.
void ElasticAgent::give_up_plan() {
  stage_ = Stage::none;
  start_limit_.reset();
  queued_.clear();
  tell_later(AgentClosed{host_});
  loop_.post([this, alive = std::weak_ptr(alive_)] {
    if (alive.lock()) hooks_.on_gone(host_);
  });
}

void ElasticAgent::tell_later(MembershipEvent event) {
  loop_.post([this, alive = std::weak_ptr(alive_), event = std::move(event)] {
    if (alive.lock()) hooks_.tell(event);
  });
}

void ElasticAgent::leave(const MembershipEvent& last) {
  stage_ = Stage::none;
  start_limit_.reset();
  close_limit_.reset();
  queued_.clear();
  for (const int worker : std::exchange(living_, {})) hooks_.on_output_end(Rank{worker});
  // First, because the other agents may begin then and be lost in turn, and the owner would order
  // workers of a host whose loss it has not heard of.
  hooks_.tell(last);
  hooks_.on_gone(host_);
}

void ElasticAgent::on_ready(const HostFacts& facts) {
  if (stage_ != Stage::starting) return;
  start_limit_.reset();
  facts_ = facts;
  stage_ = Stage::ready;
  hooks_.on_ready(host_, facts);
}

void ElasticAgent::on_control_group(const ControlGroupInfo& control_group) {
  hooks_.on_control_group(host_, control_group);
}

void ElasticAgent::on_note(std::string_view text) {
  hooks_.on_note(host_, text);
}

void ElasticAgent::on_started(Rank rank, int /*pid*/) {
  hooks_.tell(WorkerStarted{rank.value()});
}

void ElasticAgent::on_spawn_failed(Rank rank, const Error& error) {
  living_.erase(rank.value());
  hooks_.tell(WorkerNotStarted{rank.value(), error});
}

void ElasticAgent::on_output(Rank rank, Stream stream, std::string_view bytes) {
  hooks_.on_output(rank, stream, bytes);
}

void ElasticAgent::on_exit(const RankExit& exit) {
  living_.erase(exit.rank.value());
  hooks_.on_output_end(exit.rank);
  hooks_.tell(WorkerEnded{exit});
}

void ElasticAgent::on_called(const std::vector<elastic::MembershipCall>& calls) {
  for (const auto& call : calls) {
    hooks_.tell(WorkerCalled{.worker = static_cast<int>(call.worker),
                             .attempt = call.attempt,
                             .generation = call.generation});
  }
}

void ElasticAgent::on_end_asked(int number) {
  hooks_.tell(HostLeaving{.host = host_, .signal = number, .within = times_.term_grace});
}

void ElasticAgent::on_timeline(const SavedTimeline& saved) {
  hooks_.on_timeline(saved);
}

void ElasticAgent::on_answer(std::size_t /*part*/, const Answer& answer) {
  hooks_.on_answer(host_, answer);
}

void ElasticAgent::on_finished(int survivors) {
  if (survivors != 0)
    on_note(fmt::format("{} processes of the job could not be killed", survivors));
  if (stage_ == Stage::none) return;
  if (stage_ == Stage::ending) return leave(AgentClosed{host_});
  leave(AgentLost{host_, {.code = Errc::unavailable, .message = "its agent has ended"}});
}

void ElasticAgent::on_lost(const Error& error) {
  if (stage_ == Stage::none) return;
  leave(AgentLost{host_, error});
}

}  // namespace horo::launcher
