// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/job_driver.hpp"

#include <algorithm>
#include <utility>

#include "launcher/output/job_output.hpp"

namespace horo::launcher {

namespace {

/// For an agent that waits for a further assignment: longer than any pause and search for hosts. It
/// counts only where the launcher lives and says nothing; an agent whose connection ends does not
/// wait for it.
constexpr Duration kAgentStay = kHostsTimeout + std::chrono::minutes(5);

}  // namespace

/// Adds the host's number to its agent's news. One per host and generation.
class JobDriver::HostNews final : public AgentEvents {
 public:
  HostNews(JobDriver& job, std::size_t host) : job_(job), host_(host) {}

  void on_control_group(const ControlGroupInfo& control_group) override {
    if (job_.on_control_group_) job_.on_control_group_(host_, control_group);
  }

  void on_note(std::string_view text) override {
    if (job_.on_note_) job_.on_note_(host_, text);
  }

  void on_ready(const HostFacts& facts) override { job_.host_ready(host_, facts); }

  void on_started(Rank rank, int) override {
    job_.apply(RankStarted{rank});
    if (job_.on_rank_started_) job_.on_rank_started_();
  }

  void on_spawn_failed(Rank rank, const Error& error) override {
    job_.apply(RankNotSpawned{rank, error});
  }

  void on_output(Rank rank, Stream stream, std::string_view bytes) override {
    if (job_.on_output_) job_.on_output_(rank, stream, bytes);
    job_.generation_.output->take(rank, stream, bytes);
  }

  void on_exit(const RankExit& exit) override {
    job_.generation_.output->finish(exit.rank);
    job_.apply(RankEnded{exit});
  }

  /// The agents of a job that is not elastic pass no calls on.
  void on_called(const std::vector<elastic::MembershipCall>&) override {}

  void on_stdin_room() override {
    if (job_.on_stdin_room_) job_.on_stdin_room_();
  }

  void on_end_asked(int number) override { job_.apply(AgentSignalled{host_, number}); }

  void on_timeline(const SavedTimeline& saved) override { job_.timeline_.add(saved); }

  void on_answer(std::size_t part, const Answer& answer) override {
    if (job_.on_answer_) job_.on_answer_(host_, part, answer);
  }

  /// HostLink reports it as the end of the assignment.
  void on_waiting(int) override {}

  void on_finished(int survivors) override {
    flush();
    job_.apply(HostFinished{host_, survivors, SteadyClock::instance().now()});
  }

  void on_lost(const Error& error) override {
    flush();
    job_.apply(HostLost{host_, error, SteadyClock::instance().now()});
  }

 private:
  /// Shows the last incomplete lines of ranks whose exit was not reported.
  void flush() {
    for (const auto rank : job_.generation_.placement.hosts[host_].ranks)
      job_.generation_.output->finish(rank);
  }

  JobDriver& job_;
  const std::size_t host_;
};

JobDriver::JobDriver(Loop& loop, JobSpec spec, GenerationSpec first, JobHandlers handlers)
    : loop_(loop),
      spec_(std::move(spec)),
      handlers_(std::move(handlers)),
      state_(initial_state(make_generation(Epoch{1}, first.placement, first.this_machine),
                           spec_.notice_signal, spec_.policy)),
      generation_(std::move(first)),
      agents_(loop, {.may_replace = [this](std::size_t host) { return may_replace(host); },
                     .on_left = [this] { tell_ends(); }}) {
  HORO_CHECK(generation_.agents.size() == generation_.placement.hosts.size());
}

JobDriver::~JobDriver() = default;

void JobDriver::start() {
  job_begun_ = SteadyClock::instance().now();
  start_agents();
}

void JobDriver::start_agents() {
  begun_ = SteadyClock::instance().now();
  suspended_earlier_ += std::exchange(suspended_before_, {});
  run_clocks();
  generation_.output->on_taken([this](Rank rank, std::size_t bytes) {
    auto* agent = agents_.of_host(generation_.placement.ranks[rank.index()].host);
    if (agent != nullptr) agent->output_taken(rank, bytes);
  });
  for (auto& agent : generation_.agents) {
    agent.epoch = state_.generation.epoch;
    agent.stay = spec_.policy.most > 0 ? kAgentStay : Duration::zero();
  }
  agents_.begin(generation_.agents.size(), generation_.same_as, generation_.starter);
  news_.clear();
  for (std::size_t host = 0; host < agents_.size(); ++host)
    news_.push_back(std::make_unique<HostNews>(*this, host));
  for (std::size_t host = 0; host < agents_.size(); ++host) {
    agents_.start(host, generation_.agents[host], *news_[host]);
    // An earlier host could not be started, so this one has to end too.
    if (auto* agent = agents_.of_host(host); state_.phase == Phase::failing && agent != nullptr)
      agent->kill();
  }
}

bool JobDriver::may_replace(std::size_t host) {
  facts_.resize(agents_.size());
  facts_[host].reset();
  return state_.phase == Phase::starting;
}

bool JobDriver::stop_waiting() {
  if (!ended_due_ && !finished_due_) return false;
  agents_.clear();
  tell_ends();
  return true;
}

std::size_t JobDriver::ready_hosts() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(facts_, [](const auto& facts) { return facts.has_value(); }));
}

/// A job ends when its last agent has left, so that no process outlives it. An agent that waits for
/// further ranks has been released by then.
void JobDriver::tell_ends() {
  if (!ended_due_ && !finished_due_) return;
  if (state_.phase == Phase::finished && agents_.any_left()) return;
  if (std::exchange(ended_due_, false)) post(handlers_.on_ended);
  if (std::exchange(finished_due_, false)) post(handlers_.on_finished);
}

void JobDriver::restart() {
  if (state_.phase != Phase::restarting) return;
  generation_.output->on_taken({});
  on_stdin_room_ = {};
  on_control_group_ = {};
  on_note_ = {};
  on_answer_ = {};
  agents_.end();
  facts_.clear();
  ranks_begun_ = false;
  timeline_ = {};
  generation_ = {};
  pause(pause_before_restart_);
}

void JobDriver::pause(Duration duration) {
  pause_timer_ = loop_.after(duration, [this] { apply(PauseOver{SteadyClock::instance().now()}); });
}

void JobDriver::begin(GenerationSpec next) {
  HORO_CHECK(next.agents.size() == next.placement.hosts.size());
  generation_ = std::move(next);
  apply(GenerationPlanned{generation_.placement, generation_.this_machine});
}

void JobDriver::plan_failed(const Error& error) {
  apply(PlanFailed{error, SteadyClock::instance().now()});
}

void JobDriver::restart_failed(const Error& error) {
  apply(RestartFailed{error});
}

void JobDriver::host_ready(std::size_t host, const HostFacts& facts) {
  facts_.resize(agents_.size());
  facts_[host] = facts;
  if (state_.phase != Phase::starting) return;
  // A new agent, in place of one that was lost with the order to start its ranks.
  if (ranks_begun_) return agents_.of_host(host)->begin(generation_.agents[host]);
  if (ready_hosts() == agents_.size()) begin_ranks();
}

void JobDriver::begin_ranks() {
  auto& agents = generation_.agents;
  ranks_begun_ = true;
  if (generation_.complete) {
    std::vector<HostFacts> facts;
    for (const auto& host : facts_) facts.push_back(*host);
    if (auto complete = generation_.complete(agents, facts); !complete)
      return apply(RankNotSpawned{Rank{0}, complete.error()});
  }
  for (std::size_t host = 0; host < agents_.size(); ++host) {
    if (auto* agent = agents_.of_host(host)) agent->begin(agents[host]);
  }
}

void JobDriver::signal(int number) {
  apply(SignalReceived{number});
}

void JobDriver::suspend() {
  if (suspended_ || state_.phase == Phase::finished) return;
  suspended_ = SteadyClock::instance().now();
  stop_clocks();
  apply(Suspended{});
}

void JobDriver::resume() {
  if (!suspended_) return;
  suspended_before_ += SteadyClock::instance().now() - *std::exchange(suspended_, {});
  apply(Resumed{});
  run_clocks();
}

void JobDriver::run_clocks() {
  if (state_.phase == Phase::finished || suspended_) return;
  const auto now = SteadyClock::instance().now();
  if (state_.phase == Phase::starting) {
    start_timer_ = loop_.after(spec_.start_timeout - (now - begun_ - suspended_before_), [this] {
      apply(StartTimedOut{list_steps(), agents_.late_hosts()});
    });
  }
  if (spec_.time_limit) {
    const auto ran = now - job_begun_ - suspended_earlier_ - suspended_before_;
    limit_timer_ = loop_.after(*spec_.time_limit - ran, [this] { apply(TimeLimitPassed{}); });
  }
}

void JobDriver::stop_clocks() {
  start_timer_.reset();
  limit_timer_.reset();
}

void JobDriver::feed_stdin(std::string_view bytes) {
  if (auto* link = agents_.link(0)) link->feed_stdin(bytes);
}

void JobDriver::close_stdin() {
  if (auto* link = agents_.link(0)) link->close_stdin();
}

bool JobDriver::ask(std::size_t host, std::size_t part, const Question& question) {
  auto* agent = agents_.of_host(host);
  if (agent == nullptr || state_.generation.host_done[host]) return false;
  return agent->ask(part, question);
}

void JobDriver::apply(const JobEvent& event) {
  state_ = next(std::move(state_), event);
  carry_out(std::exchange(state_.orders, {}));
}

void JobDriver::order_agents(const Orders& orders) {
  agents_.for_each([&orders](Agent& agent) {
    if (orders.pass_signal) agent.signal(*orders.pass_signal);
    if (orders.stop) agent.stop(*orders.stop, orders.stop_host);
    if (orders.kill) agent.kill();
    if (orders.dismiss) agent.dismiss();
  });
}

void JobDriver::post(const Task& task) {
  if (task) loop_.post(task);
}

void JobDriver::carry_out(const Orders& orders) {
  if (orders.pass_signal || orders.stop || orders.kill || orders.dismiss) order_agents(orders);
  if (orders.all_started || orders.stop) start_timer_.reset();
  if (orders.end_generation) {
    stop_clocks();
    run_clocks();  // The time limit also holds between two generations.
    pause_before_restart_ = orders.pause.value_or(Duration::zero());
    ended_due_ = true;
  } else if (orders.pause) {
    pause(*orders.pause);
  }
  if (orders.all_hosts_again) post(handlers_.on_all_hosts_again);
  if (orders.begin_generation) start_agents();
  if (orders.plan) post(handlers_.on_plan);
  if (orders.finish) {
    pause_timer_.reset();
    stop_clocks();
    finished_due_ = true;
    agents_.release();
  }
  tell_ends();
}

}  // namespace horo::launcher
