// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/job.hpp"

#include <utility>

#include "launcher/output/output.hpp"

namespace horo::launcher {

/// One host's agent, and its news with the host's number added.
class Job::HostLink final : public AgentEvents {
 public:
  HostLink(Job& job, std::size_t host) : job_(job), host_(host) {}

  void start(const AgentSpec& spec) {
    auto agent = job_.starter_.start(spec, *this);
    if (agent) {
      agent_ = std::move(agent).value();
    } else {
      on_lost(std::move(agent).error());
    }
  }

  Agent* agent() { return agent_.get(); }

  void on_cover(const Cover& cover) override {
    if (job_.on_cover_) job_.on_cover_(host_, cover);
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
    if (job_.on_output_) job_.on_output_();
    job_.output_.take(rank, stream, bytes);
  }

  void on_exit(const RankExit& exit) override {
    job_.output_.finish(exit.rank);
    job_.apply(RankEnded{exit});
  }

  void on_stdin_room() override {
    if (job_.on_stdin_room_) job_.on_stdin_room_();
  }

  void on_end_asked(int number) override { job_.apply(EndAsked{host_, number}); }

  void on_timeline(const SavedTimeline& saved) override {
    auto& all = job_.timeline_;
    all.ranks += saved.ranks;
    if (all.directory.empty()) all.directory = saved.directory;
    if (all.problem.empty()) all.problem = saved.problem;
  }

  void on_answer(std::size_t part, const Answer& answer) override {
    if (job_.on_answer_) job_.on_answer_(host_, part, answer);
  }

  void on_finished(int survivors) override {
    flush();
    job_.apply(HostFinished{host_, survivors});
  }

  void on_lost(const Error& error) override {
    flush();
    job_.apply(HostLost{host_, error});
  }

 private:
  /// The last words of ranks whose end nobody told.
  void flush() {
    for (const auto rank : job_.spec_.placement.hosts[host_].ranks) job_.output_.finish(rank);
  }

  Job& job_;
  const std::size_t host_;
  std::unique_ptr<Agent> agent_;
};

Job::Job(Loop& loop, Starter& starter, Output& output, JobSpec spec, Task on_finished)
    : loop_(loop),
      starter_(starter),
      output_(output),
      spec_(std::move(spec)),
      on_finished_(std::move(on_finished)),
      state_(initial_state(spec_.placement, spec_.notice_signal)) {
  HORO_CHECK(spec_.agents.size() == spec_.placement.hosts.size());
}

Job::~Job() = default;

void Job::start() {
  begun_ = SteadyClock::instance().now();
  run_clocks();
  output_.on_taken([this](Rank rank, std::size_t bytes) {
    auto* agent = hosts_[spec_.placement.ranks[rank.index()].host]->agent();
    if (agent != nullptr) agent->output_taken(rank, bytes);
  });
  for (std::size_t host = 0; host < spec_.agents.size(); ++host) {
    hosts_.push_back(std::make_unique<HostLink>(*this, host));
  }
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    hosts_[host]->start(spec_.agents[host]);
    // An earlier host could not be started: what was begun after that ends as the others do.
    if (state_.phase == Phase::failing && hosts_[host]->agent() != nullptr)
      hosts_[host]->agent()->kill();
  }
}

void Job::host_ready(std::size_t host, const HostFacts& facts) {
  facts_.resize(hosts_.size());
  facts_[host] = facts;
  ++ready_;
  if (ready_ == hosts_.size() && state_.phase == Phase::starting) begin_ranks();
}

void Job::begin_ranks() {
  if (spec_.complete) {
    if (auto complete = spec_.complete(spec_.agents, facts_); !complete)
      return apply(RankNotSpawned{Rank{0}, complete.error()});
  }
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (hosts_[host]->agent() != nullptr) hosts_[host]->agent()->begin(spec_.agents[host]);
  }
}

std::string Job::list_steps() const {
  constexpr std::size_t kMost = 5;
  std::string text;
  std::size_t count = 0;
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const auto* agent = hosts_[host]->agent();
    const auto step = agent == nullptr ? std::string() : agent->step();
    if (step.empty() || ++count > kMost) continue;
    text += fmt::format("{}host {}: {}", text.empty() ? "" : "; ", spec_.agents[host].host, step);
  }
  if (count > kMost) text += fmt::format("; and {} more", count - kMost);
  return text;
}

std::vector<std::size_t> Job::late_hosts() const {
  std::vector<std::size_t> late;
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const auto* agent = hosts_[host]->agent();
    if (agent != nullptr && !agent->step().empty()) late.push_back(host);
  }
  return late;
}

void Job::signal(int number) {
  apply(SignalReceived{number});
}

void Job::suspend() {
  if (suspended_ || state_.phase == Phase::finished) return;
  suspended_ = SteadyClock::instance().now();
  start_timer_.reset();
  limit_timer_.reset();
  apply(Suspended{});
}

void Job::resume() {
  if (!suspended_) return;
  stood_still_ += SteadyClock::instance().now() - *std::exchange(suspended_, {});
  apply(Resumed{});
  run_clocks();
}

void Job::run_clocks() {
  const auto lived = SteadyClock::instance().now() - begun_ - stood_still_;
  if (state_.phase == Phase::starting) {
    start_timer_ = loop_.after(spec_.start_timeout - lived, [this] {
      apply(StartTimedOut{list_steps(), late_hosts()});
    });
  }
  if (spec_.time_limit && state_.phase != Phase::finished)
    limit_timer_ = loop_.after(*spec_.time_limit - lived, [this] { apply(TimeLimitPassed{}); });
}

void Job::feed_stdin(std::string_view bytes) {
  if (!hosts_.empty() && hosts_.front()->agent() != nullptr)
    hosts_.front()->agent()->feed_stdin(bytes);
}

void Job::close_stdin() {
  if (!hosts_.empty() && hosts_.front()->agent() != nullptr) hosts_.front()->agent()->close_stdin();
}

bool Job::ask(std::size_t host, std::size_t part, const Question& question) {
  if (host >= hosts_.size() || state_.host_done[host]) return false;
  auto* agent = hosts_[host]->agent();
  return agent != nullptr && agent->ask(part, question);
}

void Job::apply(const JobEvent& event) {
  state_ = next(std::move(state_), event);
  carry_out(std::exchange(state_.orders, {}));
}

void Job::order_agents(const Orders& orders) {
  for (auto& host : hosts_) {
    auto* agent = host->agent();
    if (agent == nullptr) continue;
    if (orders.pass_signal) agent->signal(*orders.pass_signal);
    if (orders.stop) agent->stop(*orders.stop, orders.stop_host);
    if (orders.kill) agent->kill();
    if (orders.dismiss) agent->dismiss();
  }
}

void Job::carry_out(const Orders& orders) {
  if (orders.pass_signal || orders.stop || orders.kill || orders.dismiss) order_agents(orders);
  if (orders.all_started || orders.stop) start_timer_.reset();
  if (orders.finish) {
    start_timer_.reset();
    limit_timer_.reset();
    loop_.post(std::move(on_finished_));
  }
}

}  // namespace horo::launcher
