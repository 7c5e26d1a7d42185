// SPDX-License-Identifier: Apache-2.0
#include "apps/run/session.hpp"

#include <csignal>
#include <cstring>
#include <optional>
#include <unistd.h>
#include <utility>

#include "apps/run/addresses.hpp"
#include "apps/run/jsrun_plan.hpp"
#include "apps/run/progress.hpp"
#include "apps/run/stdin_pump.hpp"
#include "base/exit_code.hpp"
#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/kv/server/server.hpp"
#include "base/log.hpp"
#include "launcher/job/job.hpp"
#include "launcher/job/monitor.hpp"
#include "launcher/job/report.hpp"
#include "launcher/mpi/jsrun.hpp"
#include "launcher/mpi/mpi_starter.hpp"

namespace horo::apps {

using namespace launcher;  // NOLINT(google-build-using-namespace): this file is the launcher's main

namespace {

constexpr Duration kEcho = std::chrono::milliseconds(300);
/// Of the time to start, for a host to connect to one that the launcher may reach better.
constexpr int kShareToConnect = 3;
constexpr Duration kToLeave = std::chrono::milliseconds(200);

/// A write to a screen that is gone gives an error instead of our end. A handler, since what is
/// ignored would be ignored by the ranks too.
void survive_broken_pipes() {
  struct sigaction action {};

  action.sa_handler = [](int) {};
  sigaction(SIGPIPE, &action, nullptr);
}

bool is_ignored(int number) {
  struct sigaction action {};

  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// As the terminal's Ctrl-Z does to a program that knows nothing of it; returns when it goes on.
/// The kernel ignores it where no shell could let it go on.
void stop_this_process() {
  struct sigaction standard {};

  struct sigaction before {};

  standard.sa_handler = SIG_DFL;
  sigaction(SIGTSTP, &standard, &before);
  raise(SIGTSTP);
  sigaction(SIGTSTP, &before, nullptr);
}

std::vector<RankLabel> labels_of(const Placement& placement) {
  std::vector<RankLabel> labels;
  for (const auto& rank : placement.ranks)
    labels.push_back({rank.local_rank, placement.hosts[rank.host].name});
  return labels;
}

std::string hosts_text(const Placement& placement) {
  if (placement.hosts.size() == 1) return placement.hosts.front().name;
  return fmt::format("{} hosts from {}", placement.hosts.size(), placement.hosts.front().name);
}

class Session {
 public:
  Session(const RunInvocation& invocation, Plan plan, RunFiles& files, History& history)
      : settings_(invocation.settings),
        plan_(std::move(plan)),
        files_(files),
        history_(history),
        begin_(history.earlier.empty() ? history.begin : SteadyClock::instance().now()) {}

  Result<RunEnd> run();

 private:
  Status prepare();
  Status meet(std::vector<AgentSpec>& agents, const std::vector<HostFacts>& facts);
  Result<std::unique_ptr<Starter>> make_starter();
  Status listen_to_signals();
  void introduce();
  std::string describe_progress() const;
  bool is_echo(int number);
  void end_at_last(int number);
  void suspend();
  void finish();
  ReportInput report_input() const;

  void say(std::string_view text) {
    if (progress_) progress_->end();
    output_->say(text);
  }

  const Settings& settings_;
  Plan plan_;
  RunFiles& files_;
  History& history_;
  const TimePoint begin_;  ///< Of this attempt.

  std::unique_ptr<Loop> loop_;
  std::unique_ptr<kv::Server> rendezvous_;
  std::optional<ScratchFile> erf_;  ///< Of jsrun, while the job runs.
  std::unique_ptr<Starter> starter_;
  std::optional<Output> output_;
  std::optional<Job> job_;
  std::unique_ptr<Monitor> monitor_;  ///< Null: the system has nothing for it.
  std::optional<StdinPump> stdin_;
  std::optional<Progress> progress_;  ///< While hosts are being reached.
  std::vector<Subscription> signals_;
  int last_signal_ = 0;  // That asked for the end, and when.
  TimePoint last_signal_at_{};
  bool suspending_ = false;
  Subscription suspension_;
  bool over_ = false;  // The job has ended; only output is left.
  RunEnd end_;
};

Result<std::unique_ptr<Starter>> Session::make_starter() {
  if (!plan_.mpi) {
    return make_ways_starter(*loop_, plan_.placement, plan_.ways,
                             settings_.get(knobs::kStartTimeout) / kShareToConnect);
  }
  auto& mpi = *plan_.mpi;
  if (!mpi.erf.empty()) {
    HORO_TRY(erf_, ScratchFile::write(mpi.erf));
    name_erf(mpi, erf_->path());
  }
  return make_mpi_starter(*loop_, {.command = mpi.command.words,
                                   .name = mpi.name,
                                   .environment = mpi.environment,
                                   .placement = plan_.placement,
                                   .here = mpi.here,
                                   .say = [this, &mpi](auto line) {
                                     say(fmt::format("{}: {}\n", mpi.program, line));
                                   }});
}

Status Session::prepare() {
  survive_broken_pipes();
  HORO_TRY(loop_, Loop::make());
  JobSpec spec{.placement = plan_.placement,
               .agents = {},
               .complete = {},
               .start_timeout = settings_.get(knobs::kStartTimeout),
               .time_limit = settings_.get(knobs::kTimeout),
               .notice_signal = number_of(settings_.get(knobs::kSignal))};
  // The limit is that of all attempts.
  if (spec.time_limit) *spec.time_limit -= begin_ - history_.begin;
  if (plan_.ways.leave_this_machine()) {
    spec.complete = [this](auto& agents, const auto& facts) { return meet(agents, facts); };
  } else {
    HORO_TRY(rendezvous_, kv::Server::start(*loop_, plan_.agents.front().secret, {}));
    for (auto& agent : plan_.agents) {
      for (auto& identity : agent.ranks) identity.rendezvous = rendezvous_->address();
    }
  }
  spec.agents = std::move(plan_.agents);  // An environment per host: large, and needed once.
  HORO_TRY(starter_, make_starter());
  HORO_TRY_STATUS(starter_->probe());
  output_.emplace(*loop_, plan_.output, labels_of(plan_.placement), std::move(files_.logs));
  job_.emplace(*loop_, *starter_, *output_, std::move(spec), [this] { finish(); });
  if (auto monitor = Monitor::open(*loop_, *job_, plan_.job_id, plan_.mpi.has_value())) {
    monitor_ = std::move(*monitor);
  } else {
    log::debug("run", "horo top will see ranks of its own host only: {}", monitor.error().message);
  }
  if (!history_.pipes_ignored) output_->on_closed([this] { job_->signal(SIGPIPE); });
  return listen_to_signals();
}

/// Every host is there: where the ranks find the launcher and each other.
Status Session::meet(std::vector<AgentSpec>& agents, const std::vector<HostFacts>& facts) {
  HORO_TRY(rendezvous_, give_addresses(*loop_, agents, facts));
  if (settings_.get(knobs::kVerbose)) {
    const auto& zero = agents.front().ranks.front();
    say(fmt::format("horo: {} hosts are there; rendezvous {}, rank 0 at {}\n", agents.size(),
                    zero.rendezvous, with_port(zero.master_address, zero.master_port)));
  }
  return {};
}

Status Session::listen_to_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    if (number == SIGHUP && is_ignored(SIGHUP)) continue;  // nohup's wish.
    const bool ends = number != SIGUSR1 && number != SIGUSR2;
    HORO_TRY(auto subscription, loop_->on_signal(number, [this, number, ends] {
      if (ends && is_echo(number)) return;
      if (number == job_->state().notice_signal && !job_->state().noticed && !over_)
        say(fmt::format("horo: SIG{}: notice that the job's time ends; the ranks get it\n",
                        sigabbrev_np(number)));
      if (over_) return end_at_last(number);
      job_->signal(number);
    }));
    signals_.push_back(std::move(subscription));
  }
  if (!is_ignored(SIGTSTP)) {
    HORO_TRY(auto subscription, loop_->on_signal(SIGTSTP, [this] { suspend(); }));
    signals_.push_back(std::move(subscription));
  }
  return {};
}

/// A terminal's or shell's signal goes to a whole process group, and a wrapper in it (timeout, a
/// batch script) passes it on: nobody has asked twice.
bool Session::is_echo(int number) {
  const auto now = SteadyClock::instance().now();
  if (number == last_signal_ && now - last_signal_at_ < kEcho) return true;
  last_signal_ = number;
  last_signal_at_ = now;
  return false;
}

/// No rank is there any more, and none shall be.
void Session::end_at_last(int number) {
  const bool notice = number == job_->state().notice_signal;
  if (!notice && (number == SIGUSR1 || number == SIGUSR2)) return;
  if (std::exchange(end_.again, false))
    end_.code = notice ? exit_code::kQueueAgain : exit_code::kSignalBase + number;
  // A reader that never takes the last lines keeps nobody from ending us.
  if (number != SIGUSR1 && number != SIGUSR2) loop_->stop();
}

/// The ranks have groups of their own, which a terminal's signal does not reach.
void Session::suspend() {
  if (std::exchange(suspending_, true)) return;
  job_->suspend();
  // A turn later the order is on its way to an agent here; to others it leaves through this
  // process, which has to live for that.
  suspension_ = loop_->after(plan_.ways.leave_this_machine() ? kToLeave : Duration::zero(), [this] {
    stop_this_process();
    suspending_ = false;
    job_->resume();
  });
}

ReportInput Session::report_input() const {
  const auto& state = job_->state();
  const auto limit = settings_.get(knobs::kTimeout);
  ReportInput input{.state = state,
                    .job_id = plan_.job_id,
                    .program = plan_.program,
                    .elapsed = SteadyClock::instance().now() - begin_,
                    .before = begin_ - history_.begin,
                    .earlier = history_.earlier,
                    .start_timeout = settings_.get(knobs::kStartTimeout),
                    .time_limit = limit.value_or(Duration{}),
                    .output_directory = settings_.get(knobs::kOutputFilename),
                    .rank_digits = rank_digits(static_cast<int>(state.ranks.size())),
                    .timeline = job_->timeline()};
  if (state.first_failure && state.first_failure->rank) {
    input.last_lines = output_->last_lines(*state.first_failure->rank);
  }
  return input;
}

void Session::finish() {
  over_ = true;
  progress_.reset();
  const auto input = report_input();
  auto text = end_report(input);
  if (text.empty() && settings_.get(knobs::kVerbose)) text = success_report(input);
  const auto now = SteadyClock::instance().now();
  const auto decision = decide_restart(history_.policy, job_->state(), history_.restarts, now);
  if (!decision.why.empty()) text += fmt::format("horo: {}\n", decision.why);
  end_ = {.code = exit_code_of(job_->state()),
          .again = decision.restart,
          .bad_hosts = bad_hosts(job_->state())};
  if (decision.restart) {
    history_.earlier.push_back(summarize(input));
    history_.restarts.push_back(now);
    text += fmt::format("horo: starting anew, restart {} of {}\n", history_.restarts.size(),
                        settings_.get(knobs::kMaxRestarts));
  }
  files_.report.write([&] { return json_report(input); });
  if (!text.empty()) say(text);
  output_->when_drained([this] { loop_->stop(); });
}

std::string Session::describe_progress() const {
  const auto& state = job_->state();
  return fmt::format("horo: {} of {} hosts are there, {} of {} ranks have started; {}",
                     job_->ready_hosts(), plan_.placement.hosts.size(),
                     state.ranks.size() - state.waiting, state.ranks.size(), job_->list_steps());
}

void Session::introduce() {
  say(fmt::format("horo: job {}: {} ranks of {} on {}{}, starter {}\n", plan_.job_id,
                  plan_.placement.ranks.size(), plan_.program, hosts_text(plan_.placement),
                  rendezvous_ ? fmt::format(", rendezvous {}", rendezvous_->address()) : "",
                  starter_->name()));
  say(fmt::format("horo: hosts: {}\n", plan_.hosts_from));
  for (std::size_t host = 0; host < plan_.placement.hosts.size(); ++host) {
    say(fmt::format("horo: host {}: {}{}\n", plan_.placement.hosts[host].name,
                    describe_parts(plan_, host), describe_way(plan_, host)));
  }
  if (plan_.mpi) {
    for (const auto& note : plan_.mpi->command.notes)
      say(fmt::format("horo: {}: {}\n", plan_.mpi->program, note));
  }
  if (plan_.threads != 0) {
    say(fmt::format("horo: OMP_NUM_THREADS={} for every rank; a value of yours is left alone\n",
                    plan_.threads));
  }
  job_->on_cover([this](std::size_t host, const Cover& cover) {
    say(fmt::format("horo: host {}: processes are ended by agent, guard and launcher{}\n",
                    plan_.placement.hosts[host].name,
                    cover.group.empty() ? fmt::format("; no control group: {}", cover.reason)
                                        : fmt::format(", and as control group {}", cover.group)));
  });
}

Result<RunEnd> Session::run() {
  HORO_TRY_STATUS(prepare());
  if (settings_.get(knobs::kVerbose)) introduce();
  if (plan_.ways.leave_this_machine()) {
    job_->on_rank_started([this] {
      if (job_->state().waiting == 0) progress_.reset();
    });
    job_->on_output([this] { progress_.reset(); });
    progress_.emplace(*loop_, STDERR_FILENO, [this] { return describe_progress(); });
  }
  job_->start();
  if (settings_.get(knobs::kStdin) == StdinMode::rank0) {
    stdin_.emplace(*loop_, *job_, STDIN_FILENO);
    stdin_->start();
  }
  loop_->run();
  files_.logs.reset();
  if (auto logs = output_->take_files()) files_.logs.emplace(std::move(*logs));
  return end_;
}

}  // namespace

int number_of(NoticeSignal notice) {
  switch (notice) {
    case NoticeSignal::usr1:
      return SIGUSR1;
    case NoticeSignal::usr2:
      return SIGUSR2;
    case NoticeSignal::term:
      return SIGTERM;
    case NoticeSignal::off:
      break;
  }
  return 0;
}

Result<RunFiles> open_files(const RunInvocation& invocation, int size) {
  RunFiles files;
  if (const auto directory = invocation.settings.get(knobs::kOutputFilename); !directory.empty()) {
    HORO_TRY(auto logs, LogFiles::create(directory, size));
    files.logs.emplace(std::move(logs));
  }
  HORO_TRY(files.report, ReportFile::open(invocation.settings.get(knobs::kJsonReport)));
  return files;
}

Result<RunEnd> run_plan(const RunInvocation& invocation, Plan plan, RunFiles& files,
                        History& history) {
  return Session(invocation, std::move(plan), files, history).run();
}

}  // namespace horo::apps
