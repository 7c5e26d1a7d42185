// SPDX-License-Identifier: Apache-2.0
#include "launcher/run/job_runner.hpp"

#include <csignal>
#include <unistd.h>
#include <utility>

#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "launcher/job/job_driver.hpp"
#include "launcher/run/elastic_attempts.hpp"
#include "launcher/run/generation_run.hpp"
#include "launcher/run/planning.hpp"
#include "launcher/run/signal_listener.hpp"

namespace horo::launcher {

namespace {

/// For an order to leave this process before the process stops.
constexpr Duration kToLeave = std::chrono::milliseconds(200);

}  // namespace

class JobRunner::Impl {
 public:
  Impl(Loop& loop, JobRequest request, RunHandler handler)
      : loop_(loop), request_(std::move(request)), handler_(std::move(handler)) {
    if (!handler_) handler_ = [](const RunEvent&) {};
  }

  const JobRequest& request() const { return request_; }

  Result<JobOutcome> run(JobPlan plan, JobRunnerOptions options) {
    if (plan.elastic) return run_elastic(std::move(plan), std::move(options));
    // Ranks keep their number, whatever hosts a restart finds.
    if (!request_.saved_plan) request_.np = plan.size();
    begin_ = generation_begin_ = options.begin.value_or(SteadyClock::instance().now());
    before_.logs = std::move(options.logs);
    closed_output_ = options.closed_output;
    HORO_TRY(const auto policy, RestartPolicy::parse(settings().get(knobs::kMaxRestarts),
                                                     settings().get(knobs::kRestartOn)));
    HORO_TRY(generation_, make_generation_run(std::move(plan)));
    announce();
    make_driver(policy);
    HORO_TRY_STATUS(listen(options.signals));
    driver_->start();
    generation_->attach(*driver_);
    loop_.run();
    planning_.reset();
    return JobOutcome{.exit_code = exit_code_of(driver_->state()),
                      .state = driver_->state(),
                      .earlier = earlier_};
  }

  void signal(int number) {
    loop_.post([this, number] { receive(number); });
  }

  void say(std::string_view text) {
    if (elastic_) return elastic_->say(text);
    if (generation_) return generation_->output().say(text);
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
  }

  StartProgress progress() const {
    if (!driver_) return {};
    const auto& generation = driver_->state().generation;
    return {.ready_hosts = driver_->ready_hosts(),
            .hosts = generation.placement.hosts.size(),
            .started_ranks = generation.fates.size() - generation.waiting,
            .ranks = generation.fates.size(),
            .steps = driver_->list_steps()};
  }

 private:
  const Settings& settings() const { return request_.settings; }

  Status listen(SignalPolicy policy) {
    if (policy != SignalPolicy::handle) return {};
    survive_broken_pipes();
    HORO_TRY(signals_, SignalListener::make(loop_, {.on_signal = [this](int n) { receive(n); },
                                                    .on_suspend = [this] { suspend(); }}));
    return {};
  }

  Result<JobOutcome> run_elastic(JobPlan plan, JobRunnerOptions options) {
    elastic_.emplace(loop_, request_, handler_,
                     options.begin.value_or(SteadyClock::instance().now()));
    HORO_TRY_STATUS(listen(options.signals));
    Task on_closed;
    if (options.closed_output == ClosedOutput::stop_job)
      on_closed = [this] { elastic_->signal(SIGPIPE); };
    HORO_TRY_STATUS(elastic_->start(std::move(plan), std::move(options.logs), on_closed));
    loop_.run();
    return JobOutcome{.exit_code = elastic_->exit_code(), .state = {}, .earlier = {}};
  }

  void emit(const RunEvent& event) { handler_(event); }

  Result<std::unique_ptr<GenerationRun>> make_generation_run(JobPlan plan) {
    HORO_TRY(auto run,
             GenerationRun::make(loop_, std::move(plan), settings(), std::exchange(before_, {}),
                                 [this](const RunEvent& event) { emit(event); }));
    if (closed_output_ == ClosedOutput::stop_job)
      run->output().on_closed([this] { driver_->signal(SIGPIPE); });
    return run;
  }

  void make_driver(const RestartPolicy& policy) {
    driver_.emplace(loop_,
                    JobSpec{.start_timeout = settings().get(knobs::kStartTimeout),
                            .time_limit = settings().get(knobs::kTimeout),
                            .notice_signal = number_of(settings().get(knobs::kSignal)),
                            .policy = policy},
                    generation_->take_spec(),
                    JobHandlers{.on_ended = [this] { generation_ended(); },
                                .on_plan = [this] { plan_next(); },
                                .on_all_hosts_again = [this] { emit(AllHostsAgain{}); },
                                .on_finished = [this] { finished(); }});
    driver_->on_rank_started([this] {
      const auto& generation = driver_->state().generation;
      if (generation.waiting != 0) return;
      emit(RanksStarted{.hosts = generation.placement.hosts.size(),
                        .kept_agents = driver_->kept_agents()});
    });
    driver_->on_output([this](Rank rank, Stream stream, std::string_view bytes) {
      emit(RankWrote{.rank = rank, .stream = stream, .bytes = bytes});
    });
  }

  void announce() {
    const auto rendezvous = generation_->rendezvous();
    emit(GenerationStarting{.plan = generation_->plan(),
                            .starter = generation_->starter_name(),
                            .rendezvous = rendezvous});
  }

  void receive(int number) {
    if (elastic_) return elastic_->signal(number);
    const auto& state = driver_->state();
    if (state.phase == Phase::finished) {
      // Neither agents that do not leave nor a reader that never takes the last lines may keep the
      // launcher from ending.
      if (ends_programs(number) && !driver_->stop_waiting()) loop_.stop();
      return;
    }
    if (number == state.notice_signal && !state.noticed && state.phase != Phase::restarting)
      emit(NoticeTaken{number});
    driver_->signal(number);
  }

  /// The ranks have process groups of their own, which a terminal's Ctrl-Z does not reach.
  void suspend() {
    if (suspension_) return;
    if (elastic_) {
      elastic_->suspend();
    } else {
      driver_->suspend();
    }
    // An order to an agent here has left one turn later; those to other hosts leave through this
    // process, which has to run for that.
    suspension_ = loop_.after(uses_other_hosts() ? kToLeave : Duration::zero(), [this] {
      stop_this_process();
      suspension_.reset();
      if (elastic_) return elastic_->resume();
      driver_->resume();
    });
  }

  bool uses_other_hosts() const {
    if (elastic_) return elastic_->uses_other_hosts();
    return generation_ ? generation_->plan().starts.uses_other_hosts()
                       : before_.hosts && before_.hosts->starts.uses_other_hosts();
  }

  ReportInput report_input() const {
    const auto& state = driver_->state();
    ReportInput input{.state = state,
                      .job_id = generation_->plan().job_id,
                      .program = generation_->plan().program,
                      .elapsed = SteadyClock::instance().now() - generation_begin_,
                      .before = generation_begin_ - begin_,
                      .earlier = earlier_,
                      .start_timeout = settings().get(knobs::kStartTimeout),
                      .time_limit = settings().get(knobs::kTimeout).value_or(Duration{}),
                      .last_lines = {},
                      .output_directory = settings().get(knobs::kOutputFilename),
                      .rank_digits = rank_digits(generation_->plan().size()),
                      .timeline = driver_->timeline()};
    const auto& first = state.generation.first_failure;
    if (first && first->rank) input.last_lines = generation_->output().last_lines(*first->rank);
    return input;
  }

  void generation_ended() {
    const auto input = report_input();
    const auto& restart = driver_->state().restart;
    emit(GenerationEnded{
        .report = input, .decision = restart.decision, .restarts = restart.times.size()});
    if (driver_->state().phase != Phase::restarting) return;
    last_.emplace(input);
    generation_end_ = SteadyClock::instance().now();
    earlier_.push_back(summarize(input));
    generation_->output().when_drained([this] { release_generation(); });
  }

  void release_generation() {
    if (driver_->state().phase != Phase::restarting) return;
    driver_->restart();
    before_ = generation_->hand_over();
    generation_.reset();
  }

  void finished() {
    const auto& restart = driver_->state().restart;
    if (last_) {
      last_->after = SteadyClock::instance().now() - generation_end_;
      emit(NotRestarted{*last_});
    }
    // A signal or the time limit between two generations does not wait for the output's reader.
    if (generation_ == nullptr || restart.cancelled_by || restart.out_of_time) return loop_.stop();
    generation_->output().when_drained([this] { loop_.stop(); });
  }

  void plan_next() {
    const auto& restart = driver_->state().restart;
    request_.restart_count = static_cast<int>(restart.times.size());
    request_.avoided_hosts = restart.avoided;
    planning_.emplace(loop_, request_, [this](Result<JobPlan>& plan) { planned(plan); });
  }

  void planned(Result<JobPlan>& plan) {
    planning_.reset();
    // A signal may have ended the job meanwhile.
    if (driver_->state().phase != Phase::restarting) return;
    if (!plan) return driver_->plan_failed(plan.error());
    begin_next(std::move(*plan));
  }

  void begin_next(JobPlan plan) {
    generation_begin_ = SteadyClock::instance().now();
    auto run = make_generation_run(std::move(plan));
    if (!run) return driver_->restart_failed(run.error());
    generation_ = std::move(*run);
    last_.reset();
    announce();
    driver_->begin(generation_->take_spec());
    generation_->attach(*driver_);
  }

  Loop& loop_;
  JobRequest request_;
  RunHandler handler_;
  TimePoint begin_{};             ///< When the program began.
  TimePoint generation_begin_{};  ///< The first generation counts from the start of the program.
  ClosedOutput closed_output_ = ClosedOutput::ignore;
  Handover before_;  ///< Between two generations.
  std::vector<Attempt> earlier_;
  TimePoint generation_end_{};
  std::optional<ReportInput> last_;  ///< Between two generations. It refers to the driver's state.
  // The driver's agents use the generation's starter and output, so they are destroyed first.
  std::unique_ptr<GenerationRun> generation_;  ///< Null between two generations.
  std::optional<JobDriver> driver_;
  std::optional<ElasticAttempts> elastic_;  ///< Runs an elastic job in place of the two above.
  std::unique_ptr<SignalListener> signals_;
  Subscription suspension_;
  std::optional<Planning> planning_;  ///< While the next generation is being planned.
};

JobRunner::JobRunner(Loop& loop, JobRequest request, RunHandler handler)
    : impl_(std::make_unique<Impl>(loop, std::move(request), std::move(handler))) {}

JobRunner::~JobRunner() = default;

Result<JobPlan> JobRunner::plan() const {
  return probe_and_plan(impl_->request());
}

Result<JobOutcome> JobRunner::run(JobPlan plan, JobRunnerOptions options) {
  return impl_->run(std::move(plan), std::move(options));
}

void JobRunner::signal(int number) {
  impl_->signal(number);
}

void JobRunner::say(std::string_view text) {
  impl_->say(text);
}

StartProgress JobRunner::progress() const {
  return impl_->progress();
}

}  // namespace horo::launcher
