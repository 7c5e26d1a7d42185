// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/rank_set.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <unistd.h>
#include <utility>

#include "base/exit_code.hpp"
#include "launcher/process/descendants.hpp"

namespace horo::launcher {

namespace {

using namespace std::chrono_literals;

constexpr Duration kKillTime = 5s;   ///< For the kernel to end processes after SIGKILL.
constexpr Duration kDiskTime = 10s;  ///< For writing a timeline's files.

Poison poison_by(Rank rank, ExitStatus status) {
  const bool signalled = status.signalled();
  return {.rank = rank,
          .cause = signalled ? LossCause::signalled : LossCause::exited,
          .detail = static_cast<std::uint32_t>(signalled ? status.signal() : status.code())};
}

/// Adds the variables whose values the agent has and the launcher's host cannot know.
AgentSpec with_own_variables(AgentSpec spec) {
  for (const auto& name : spec.own_variables) {
    if (const char* value = std::getenv(name.c_str()); value != nullptr)
      spec.environment.emplace_back(name, value);
  }
  return spec;
}

StdinFeed::State first_state(const AgentSpec& spec) {
  const bool may_read = spec.elastic || spec.ranks.front().rank == Rank{0};
  const bool reads = spec.stdin_policy == StdinPolicy::rank0 && may_read;
  return reads ? StdinFeed::State::waiting : StdinFeed::State::ended;
}

}  // namespace

// -- Start ----------------------------------------------------------------------------------------

Result<std::unique_ptr<RankSet>> RankSet::start(Loop& loop, AgentSpec spec,
                                                const Inheritance& inheritance, Report report) {
  spec = with_own_variables(std::move(spec));
  HORO_TRY(auto board, RankBoard::make(spec));
  std::unique_ptr<RankSet> set(
      new RankSet(loop, std::move(spec), std::move(board), inheritance, std::move(report)));
  HORO_TRY_STATUS(set->leftovers_.begin());
  HORO_TRY_STATUS(set->prepare(inheritance));
  set->schedule_start();
  return set;
}

RankSet::RankSet(Loop& loop, AgentSpec spec, std::unique_ptr<RankBoard> board,
                 const Inheritance& inheritance, Report report)
    : loop_(loop),
      spec_(std::move(spec)),
      board_(std::move(board)),
      timeline_(RankTimeline::make(spec_)),
      report_(std::move(report)),
      leftovers_(
          loop,
          [this] {
            std::vector<pid_t> leaders;
            for (const auto* entry : entries_.living()) leaders.push_back(entry->group->pid());
            return leaders;
          },
          inheritance.others),
      stdin_(first_state(spec_), [this] { report_(protocol::StdinRoom{}); }),
      entries_(spec_),
      closed_(!spec_.elastic) {}

RankSet::~RankSet() = default;

Status RankSet::prepare(const Inheritance& inheritance) {
  std::vector<Inherited> descriptors{{board_->descriptor(), kBoardDescriptor}};
  if (timeline_) descriptors.push_back({timeline_->descriptor(), kTimelineDescriptor});
  HORO_TRY(commands_, RankCommands::make(spec_, inheritance, std::move(descriptors)));
  for (const auto& identity : spec_.ranks) HORO_TRY_STATUS(admit(identity));
  return {};
}

Status RankSet::admit(const WorkerIdentity& identity) {
  HORO_TRY(Entry* const entry, entries_.add(identity));
  auto& told = entry->identity;
  told.board_fd = kBoardDescriptor;
  told.agent_pid = getpid();
  told.board_nonce = board_->nonce();
  told.timeline_fd = timeline_ ? kTimelineDescriptor : -1;
  told.timeline_index = entry->slot.value();
  told.membership = spec_.membership;
  if (spec_.elastic) board_->reset(entry->slot);
  return {};
}

Status RankSet::spawn(const std::vector<WorkerIdentity>& workers) {
  if (ending()) return {};
  if (closed_) return fail(Errc::protocol, "the launcher gave a worker after 'close'");
  for (const auto& worker : workers) HORO_TRY_STATUS(admit(worker));
  if (phase_ == Phase::running) schedule_start();
  return {};
}

/// Each rank starts in its own turn of the loop, so that an early failure is seen between two.
void RankSet::schedule_start() {
  if (entries_.any_waiting()) starter_ = loop_.after(Duration::zero(), [this] { start_next(); });
}

void RankSet::start_next() {
  // The worker that was to start may have been cancelled since.
  if (ending() || !entries_.any_waiting()) return;
  auto& entry = entries_.take_next();
  auto group = spawn_group(entry);
  if (!group) return not_started(entry, group.error());
  entry.group = std::move(*group);
  entry.started = SteadyClock::instance().now();
  entry.life = Entry::Life::running;
  if (spec_.output_window != 0)
    entry.group->read_at_most(std::max<std::size_t>(spec_.output_window / 2, 1));
  entry.group->on_output(
      [this, &entry](Stream stream, std::string_view bytes) { take_output(entry, stream, bytes); });
  entry.group->on_exit([this, &entry](ExitStatus status) { exited(entry, status); });
  read_as_wanted(entry);
  report_(protocol::Started{entry.number, entry.group->pid()});
  if (is_stdin_reader(entry)) stdin_.open(*entry.group);
  schedule_start();
}

Result<std::unique_ptr<ProcessGroup>> RankSet::spawn_group(const Entry& entry) {
  HORO_TRY(const auto command, commands_->of(entry.identity, entry.part));
  return ProcessGroup::spawn(loop_, command);
}

void RankSet::not_started(Entry& entry, const Error& error) {
  const Rank rank = entry.number;
  report_(protocol::SpawnFailed{rank, error});
  if (!spec_.elastic)
    return stop({.rank = rank, .cause = LossCause::aborted, .detail = 0}, spec_.host);
  entry.life = Entry::Life::ended;
  if (is_stdin_reader(entry)) stdin_.end();
  if (phase_ == Phase::running) schedule_start();
  finish_if_over();
}

bool RankSet::is_stdin_reader(const Entry& entry) const {
  return spec_.stdin_policy == StdinPolicy::rank0 && entry.number == Rank{0};
}

// -- Output ---------------------------------------------------------------------------------------

void RankSet::want_output(bool wanted) {
  if (output_wanted_ == wanted) return;
  output_wanted_ = wanted;
  // Begins after the rank that was read last, so that the rank that writes most is not always
  // first.
  auto& entries = entries_.all();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto& entry = entries[(first_read_ + i) % entries.size()];
    if (entry.is_alive()) read_as_wanted(entry);
  }
}

void RankSet::read_as_wanted(Entry& entry) {
  if (output_wanted_ && !entry.window.is_full()) {
    entry.group->resume_output();
  } else {
    entry.group->pause_output();
  }
}

void RankSet::take_output(Entry& entry, Stream stream, std::string_view bytes) {
  first_read_ = entry.slot.index() + 1;
  if (entry.window.add(bytes.size())) read_as_wanted(entry);
  report_(protocol::Output{entry.number, stream, bytes});
}

void RankSet::output_taken(Rank rank, std::size_t bytes) {
  auto* const entry = entries_.find(rank);
  if (entry == nullptr) return;
  if (entry->window.remove(bytes) && entry->is_alive()) read_as_wanted(*entry);
}

void RankSet::ask(const Question& question) {
  const auto report = [this](const Answer& answer) {
    std::visit([this](const auto& message) { report_(message); }, answer);
  };
  if (!timeline_) {
    constexpr const char* kProblem = "there is no memory for timelines on this host";
    if (const auto* fetch = std::get_if<Fetch>(&question))
      return report(Piece{.asker = fetch->asker, .problem = kProblem, .bytes = {}});
    return report(Viewed{.problem = kProblem, .rows = {}});
  }
  if (!inspector_) inspector_.emplace(loop_, timeline_, report);
  inspector_->ask(question);
}

// -- End ------------------------------------------------------------------------------------------

void RankSet::exited(Entry& entry, ExitStatus status) {
  const bool killed_here = entry.life == Entry::Life::killed;
  entry.life = Entry::Life::ended;
  if (is_stdin_reader(entry)) stdin_.end();
  const auto membership = board_->mark_ended(entry.slot);
  // The launcher decides whether that exit code is a failure: it knows what the signal meant.
  const bool asks_for_requeue =
      user_signalled_ && !status.signalled() && status.code() == exit_code::kQueueAgain;
  const bool failed = (!status.success() && !asks_for_requeue) || membership.in_use;
  if (failed && !spec_.elastic) end(poison_by(entry.number, status), spec_.host);
  // A worker hears of a rank of its generation, which means nothing outside of it.
  const bool heard_of_other = !spec_.elastic && membership.heard != entry.number;
  const Rank heard = heard_of_other ? membership.heard : Rank{-1};
  // Only a SIGKILL that did not come from here can be the kernel's.
  const bool oom = status.signal() == SIGKILL && !killed_here && oom_.take_kill();
  report_(protocol::Exited{{.rank = entry.number,
                            .wait_status = status.wait_status(),
                            .core_dumped = status.core_dumped(),
                            .oom_killed = oom,
                            .attached = membership.joined,
                            .undetached = membership.in_use,
                            .heard = heard,
                            .lived = SteadyClock::instance().now() - entry.started,
                            .gpu_faults = failed ? gpus_.faults() : ""}});
  if (spec_.elastic && !ending()) {
    leftovers_.kill_family(entry.group->pid(), fmt::format("HORO_WORKER={}", entry.number));
  }
  leftovers_.reap();
  finish_if_over();
}

void RankSet::end(const Poison& cause, std::string_view host) {
  if (ending()) return;
  const bool was_paused = std::exchange(phase_, Phase::ending) == Phase::paused;
  starter_.reset();
  stdin_.end_if_waiting();
  board_->poison(cause, host);
  if (was_paused) signal(SIGCONT);  // Stopped ranks could not see the poison.
  // A rank that has detached may have seen the loss before this agent, and be about to exit.
  std::vector<Entry*> others;
  bool has_members = false;
  for (auto* entry : entries_.living()) {
    if (board_->joined_by(entry->slot)) {
      has_members = true;
    } else {
      others.push_back(entry);
    }
  }
  terminate(others);
  if (has_members) {
    ack_timer_ = loop_.after(spec_.release_timeout, [this] { kill_unresponsive(); });
    grace_timer_ = loop_.after(spec_.failure_grace, [this] { terminate(entries_.living()); });
  }
  finish_timer_ = loop_.after(spec_.failure_grace + spec_.grace + kKillTime, [this] { finish(); });
}

/// SIGTERM to groups and to descendants that left them, once to each; SIGKILL later.
void RankSet::terminate(const std::vector<Entry*>& entries) {
  if (entries.empty()) return;
  const auto tree = ProcessTree::look();
  for (auto* entry : entries) {
    const int leader = entry->group->pid();
    entry->group->stop(spec_.grace);
    if (!tree) continue;
    for (const pid_t pid : tree->below(leader)) {
      if (getpgid(pid) == leader) continue;
      ::kill(pid, SIGTERM);
      ::kill(pid, SIGCONT);
    }
  }
}

/// A rank that is stopped, or in uninterruptible sleep, would keep its peers waiting for the end of
/// their operations.
void RankSet::kill_unresponsive() {
  for (auto* entry : entries_.living()) {
    if (board_->lacks_ack(entry->slot)) kill_rank(*entry);
  }
}

void RankSet::kill_rank(Entry& entry) {
  entry.life = Entry::Life::killed;
  entry.group->signal(SIGKILL);
}

void RankSet::signal(int number) {
  if (number == SIGSTOP) {
    if (ending()) return;
    phase_ = Phase::paused;
    starter_.reset();
  }
  user_signalled_ = user_signalled_ || number == SIGUSR1 || number == SIGUSR2;
  if (number == SIGCONT && phase_ == Phase::paused) {
    phase_ = Phase::running;
    schedule_start();
  }
  for (auto* entry : entries_.living()) entry->group->signal(number);
}

void RankSet::end_worker(Rank worker) {
  auto* const entry = entries_.find(worker);
  if (entry == nullptr) return;
  if (entries_.cancel(worker))
    return not_started(*entry, {Errc::cancelled, "it was ended before it had started"});
  terminate({entry});
}

void RankSet::close() {
  closed_ = true;
  finish_if_over();
}

void RankSet::stop(const Poison& cause, std::string_view host) {
  end(cause, host);
  finish_if_over();
}

void RankSet::kill() {
  if (saving_) return saving_->give_up();
  end({.rank = Rank{-1}, .cause = LossCause::aborted, .detail = 0}, spec_.host);
  for (auto* entry : entries_.living()) kill_rank(*entry);
  if (phase_ != Phase::finished) finish_timer_ = loop_.after(kKillTime, [this] { finish(); });
  leftovers_.signal_kill();
  finish_if_over();
}

void RankSet::finish_if_over() {
  const bool may_start = !ending() && (!closed_ || entries_.any_waiting());
  if (may_start || !entries_.living().empty()) return;
  finish();
}

void RankSet::finish() {
  if (phase_ == Phase::finished) return;
  saves_timeline_ = std::exchange(phase_, Phase::finished) == Phase::ending;
  ack_timer_.reset();
  grace_timer_.reset();
  finish_timer_.reset();
  // A process that outlived its rank gets no further grace.
  leftovers_.kill_all(Deadline::in(SteadyClock::instance(), kKillTime),
                      [this](int survivors) { save_timeline(survivors); });
}

void RankSet::save_timeline(int survivors) {
  if (!saves_timeline_ || !timeline_) return report_finished(survivors, {});
  saving_.emplace(loop_, timeline_, spec_.timeline_directory, kDiskTime,
                  [this, survivors](const auto& saved) { report_finished(survivors, saved); });
}

void RankSet::report_finished(int survivors, const SavedTimeline& saved) {
  if (saved.ranks != 0 || !saved.problem.empty()) report_(protocol::Recorded{saved});
  report_(protocol::Finished{survivors});
}

}  // namespace horo::launcher
