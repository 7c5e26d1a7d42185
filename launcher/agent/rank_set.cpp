// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/rank_set.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/exit_code.hpp"
#include "discovery/this_machine.hpp"
#include "launcher/process/descendants.hpp"

namespace horo::launcher {

namespace {

using namespace std::chrono_literals;

constexpr Duration kAckTime =
    1s;  ///< After a poison: then who may still touch peers' memory is killed.
constexpr const char* kVisibleGpus = "CUDA_VISIBLE_DEVICES";
constexpr Duration kPatience = 5s;   ///< For the kernel to end processes that have got SIGKILL.
constexpr Duration kTurn = 50ms;     ///< Between two attempts to kill what is left.
constexpr Duration kDiskTime = 10s;  ///< For a timeline's files.

Poison poison_by(Rank rank, ExitStatus status) {
  if (status.signalled()) {
    return {.rank = rank,
            .cause = LossCause::signalled,
            .detail = static_cast<std::uint32_t>(status.signal())};
  }
  return {.rank = rank,
          .cause = LossCause::exited,
          .detail = static_cast<std::uint32_t>(status.code())};
}

/// What this host's agent has and the launcher's host cannot know.
void add_own_variables(AgentSpec& spec) {
  for (const auto& name : spec.own_variables) {
    if (const char* value = std::getenv(name.c_str()); value != nullptr)
      spec.environment.emplace_back(name, value);
  }
}

}  // namespace

Result<std::unique_ptr<RankSet>> RankSet::start(Loop& loop, AgentSpec spec,
                                                const Inheritance& inheritance, Report report) {
  add_own_variables(spec);
  HORO_TRY(auto board, RankBoard::make(spec));
  std::unique_ptr<RankSet> set(
      new RankSet(loop, std::move(spec), std::move(board), std::move(report)));
  // Orphans that ended are handed up to us; nobody else would reap them.
  HORO_TRY(set->children_, loop.on_signal(SIGCHLD, [raw = set.get()] { raw->reap_orphans(); }));
  set->inherited_ = inheritance.environment;
  set->others_ = inheritance.others;
  HORO_TRY_STATUS(set->share_host());
  set->prepare(inheritance);
  set->schedule_start();
  return set;
}

RankSet::RankSet(Loop& loop, AgentSpec spec, std::unique_ptr<RankBoard> board, Report report)
    : loop_(loop),
      spec_(std::move(spec)),
      board_(std::move(board)),
      timeline_(RankTimeline::make(spec_)),
      report_(std::move(report)) {}

RankSet::~RankSet() = default;

/// The host as this process finds it: its affinity, its GPUs.
Status RankSet::share_host() {
  const auto given = [&](std::string_view name) {
    const auto is_it = [&](const auto& variable) { return variable.first == name; };
    return std::any_of(spec_.environment.begin(), spec_.environment.end(), is_it) ||
           std::any_of(inherited_.begin(), inherited_.end(), is_it);
  };
  const auto& last = spec_.ranks.back();  // The host may have ranks that are other agents'.
  const int ranks = std::max(last.local_size, last.local_rank.value() + 1);
  PartsRequest request{
      .bind_to = spec_.bind_to, .gpus = spec_.gpus, .ranks = ranks, .visible_gpus = {}};
  // A batch system tells each host what it may use there; the launcher's value is another host's.
  if (const char* visible = std::getenv(kVisibleGpus); visible != nullptr)
    request.visible_gpus = visible;
  HORO_TRY(parts_, share_this_machine(request));
  if (!parts_.gpu_order.empty()) common_.emplace_back("CUDA_DEVICE_ORDER", parts_.gpu_order);
  // Frameworks start a thread per core otherwise, in every rank.
  if (ranks > 1 && !given("OMP_NUM_THREADS")) {
    const int threads = std::max(1, discovery::usable_cores() / ranks);
    common_.emplace_back("OMP_NUM_THREADS", std::to_string(threads));
  }
  return {};
}

void RankSet::prepare(const Inheritance& inheritance) {
  command_.arguments = spec_.command;
  command_.directory = spec_.directory;
  command_.descriptors = {{board_->descriptor(), kBoardDescriptor}};
  if (timeline_) command_.descriptors.push_back({timeline_->descriptor(), kTimelineDescriptor});
  for (const int fd : inheritance.descriptors) command_.descriptors.push_back({fd, fd});
  command_.descriptor_limit = inheritance.descriptor_limit;
  for (const auto& identity : spec_.ranks) {
    const LocalRank slot{static_cast<int>(entries_.size())};
    auto& entry = entries_.emplace_back();
    entry.identity = identity;
    entry.slot = slot;
    entry.identity.board_fd = kBoardDescriptor;
    entry.identity.agent_pid = getpid();
    entry.identity.board_nonce = board_->nonce();
    entry.identity.timeline_fd = timeline_ ? kTimelineDescriptor : -1;
    entry.identity.timeline_index = slot.value();
  }
}

void RankSet::start_next() {
  if (ending_) return;
  auto& entry = entries_[next_];
  auto group = spawn(entry);
  if (!group) {
    report_(protocol::SpawnFailed{entry.identity.rank, group.error()});
    return stop({.rank = entry.identity.rank, .cause = LossCause::aborted, .detail = 0},
                spec_.host);
  }
  entry.group = std::move(*group);
  entry.started = SteadyClock::instance().now();
  entry.alive = true;
  if (spec_.output_window != 0)
    entry.group->read_at_most(std::max<std::size_t>(spec_.output_window / 2, 1));
  entry.group->on_output(
      [this, &entry](Stream stream, std::string_view bytes) { pass_on(entry, stream, bytes); });
  entry.group->on_exit([this, &entry](ExitStatus status) { exited(entry, status); });
  listen(entry);
  report_(protocol::Started{entry.identity.rank, entry.group->pid()});
  if (&entry == stdin_reader()) {
    if (!early_stdin_.empty()) feed_stdin(std::exchange(early_stdin_, {}));
    if (early_close_) close_stdin();
  }
  ++next_;
  schedule_start();
}

/// Each in its own turn of the loop, so that an early failure is seen between two starts.
void RankSet::schedule_start() {
  if (next_ < entries_.size()) starter_ = loop_.after(Duration::zero(), [this] { start_next(); });
}

Result<std::unique_ptr<ProcessGroup>> RankSet::spawn(const Entry& entry) {
  command_.environment = inherited_;
  command_.environment.insert(command_.environment.end(), spec_.environment.begin(),
                              spec_.environment.end());
  command_.environment.emplace_back("PYTHONUNBUFFERED", "1");
  command_.environment.insert(command_.environment.end(), common_.begin(), common_.end());
  const auto& part = parts_.ranks[entry.identity.local_rank.index()];
  command_.cpus = part.cpus;
  if (!part.gpus.empty()) command_.environment.emplace_back(kVisibleGpus, part.gpus);
  for (auto& variable : worker_environment(entry.identity))
    command_.environment.push_back(std::move(variable));
  const bool reads = spec_.stdin_policy == StdinPolicy::rank0 && entry.identity.rank == Rank{0};
  command_.input = reads ? Input::pipe : Input::none;
  return ProcessGroup::spawn(loop_, command_);
}

std::vector<RankSet::Entry*> RankSet::living() {
  std::vector<Entry*> list;
  for (auto& entry : entries_) {
    if (entry.alive) list.push_back(&entry);
  }
  return list;
}

void RankSet::exited(Entry& entry, ExitStatus status) {
  entry.alive = false;
  const auto membership = board_->bury(entry.slot);
  // Whether that is a failure the launcher says, who knows what the signal meant.
  const bool asks_again =
      signalled_ && !status.signalled() && status.code() == exit_code::kQueueAgain;
  const bool failed = (!status.success() && !asks_again) || membership.in_use;
  if (failed) end(poison_by(entry.identity.rank, status), spec_.host);
  // Only a kill that was not ours can be the kernel's.
  const bool oom = status.signal() == SIGKILL && !entry.killed && oom_.take_kill();
  report_(protocol::Exited{
      {.rank = entry.identity.rank,
       .wait_status = status.wait_status(),
       .core_dumped = status.core_dumped(),
       .oom_killed = oom,
       .attached = membership.joined,
       .undetached = membership.in_use,
       .heard = membership.heard == entry.identity.rank ? Rank{-1} : membership.heard,
       .lived = SteadyClock::instance().now() - entry.started}});
  reap_orphans();
  finish_if_over();
}

void RankSet::end(const Poison& cause, std::string_view host) {
  if (ending_) return;
  ending_ = true;
  starter_.reset();
  board_->poison(cause, host);
  if (stopped_) signal(SIGCONT);  // They have to see the poison.
  // Who has detached may have heard of the loss before us, and be on its way out.
  std::vector<Entry*> at_once;
  bool held = false;
  for (auto* entry : living()) {
    if (board_->joined_by(entry->slot)) {
      held = true;
    } else {
      at_once.push_back(entry);
    }
  }
  terminate(at_once);
  if (held) {
    ack_timer_ = loop_.after(kAckTime, [this] { kill_silent(); });
    grace_timer_ = loop_.after(spec_.failure_grace, [this] { terminate(living()); });
  }
  last_resort_ = loop_.after(spec_.failure_grace + spec_.grace + kPatience, [this] { finish(); });
}

/// SIGTERM to groups and to descendants that left them, once to each; SIGKILL later.
void RankSet::terminate(const std::vector<Entry*>& entries) {
  if (entries.empty()) return;
  const auto family = Family::look();
  for (auto* entry : entries) {
    const int leader = entry->group->pid();
    entry->group->stop(spec_.grace);
    if (!family) continue;
    for (const pid_t pid : family->below(leader)) {
      if (getpgid(pid) == leader) continue;
      ::kill(pid, SIGTERM);
      ::kill(pid, SIGCONT);
    }
  }
}

/// A stopped rank, or one in uninterruptible sleep, would keep its peers waiting for the end of
/// their operations.
void RankSet::kill_silent() {
  for (auto* entry : living()) {
    if (board_->lacks_ack(entry->slot)) kill_rank(*entry);
  }
}

void RankSet::kill_rank(Entry& entry) {
  entry.killed = true;
  entry.group->signal(SIGKILL);
}

void RankSet::signal(int number) {
  if (number == SIGSTOP) {
    if (ending_) return;
    stopped_ = true;
    starter_.reset();
  }
  signalled_ = signalled_ || number == SIGUSR1 || number == SIGUSR2;
  if (number == SIGCONT && std::exchange(stopped_, false) && !ending_) schedule_start();
  for (auto* entry : living()) entry->group->signal(number);
}

void RankSet::stop(const Poison& cause, std::string_view host) {
  end(cause, host);
  finish_if_over();
}

void RankSet::kill() {
  if (saving_) return saving_->give_up();
  end({.rank = Rank{-1}, .cause = LossCause::aborted, .detail = 0}, spec_.host);
  for (auto* entry : living()) kill_rank(*entry);
  if (!finished_) last_resort_ = loop_.after(kPatience, [this] { finish(); });
  signal_descendants(getpid(), SIGKILL, other_children());
  finish_if_over();
}

RankSet::Entry* RankSet::stdin_reader() {
  if (spec_.stdin_policy != StdinPolicy::rank0) return nullptr;
  auto& first = entries_.front();
  return first.identity.rank == Rank{0} ? &first : nullptr;
}

void RankSet::feed_stdin(std::string_view bytes) {
  auto* reader = stdin_reader();
  if (reader != nullptr && reader->group == nullptr && !ending_) {
    early_stdin_.append(bytes);
    return;
  }
  const auto taken = [this] { report_(protocol::StdinRoom{}); };
  if (reader == nullptr || !reader->alive) return taken();
  reader->group->write_input(bytes, taken);
}

void RankSet::close_stdin() {
  auto* reader = stdin_reader();
  if (reader == nullptr) return;
  if (reader->group == nullptr) {
    early_close_ = true;
  } else if (reader->alive) {
    reader->group->close_input();
  }
}

void RankSet::want_output(bool wanted) {
  if (output_wanted_ == wanted) return;
  output_wanted_ = wanted;
  // In turn from the one after the last that was heard: who writes most may not always be first.
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    auto& entry = entries_[(turn_ + i) % entries_.size()];
    if (entry.alive) listen(entry);
  }
}

std::vector<int> RankSet::other_children() const {
  return others_ ? others_() : std::vector<int>();
}

void RankSet::listen(Entry& entry) {
  if (output_wanted_ && !entry.held) {
    entry.group->resume_output();
  } else {
    entry.group->pause_output();
  }
}

void RankSet::pass_on(Entry& entry, Stream stream, std::string_view bytes) {
  turn_ = static_cast<std::size_t>(&entry - entries_.data()) + 1;
  entry.on_its_way += bytes.size();
  if (spec_.output_window != 0 && !entry.held && entry.on_its_way >= spec_.output_window) {
    entry.held = true;
    listen(entry);
  }
  report_(protocol::Output{entry.identity.rank, stream, bytes});
}

void RankSet::output_taken(Rank rank, std::size_t bytes) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [rank](const Entry& entry) {
    return entry.identity.rank == rank;
  });
  if (found == entries_.end()) return;
  found->on_its_way -= std::min(bytes, found->on_its_way);
  if (!found->held || found->on_its_way > spec_.output_window / 2) return;
  found->held = false;
  if (found->alive) listen(*found);
}

void RankSet::ask(const Question& question) {
  const auto tell = [this](const Answer& answer) {
    std::visit([this](const auto& words) { report_(words); }, answer);
  };
  if (!timeline_) {
    constexpr const char* kWhy = "there is no memory for timelines on this host";
    if (const auto* fetch = std::get_if<Fetch>(&question))
      return tell(Piece{.asker = fetch->asker, .problem = kWhy, .bytes = {}});
    return tell(Viewed{.problem = kWhy, .rows = {}});
  }
  if (!lookout_) lookout_.emplace(loop_, timeline_, tell);
  lookout_->ask(question);
}

void RankSet::reap_orphans() {
  const auto others = other_children();
  const auto has_a_group = [&](pid_t pid) {
    return std::any_of(
               entries_.begin(), entries_.end(),
               [&](const Entry& entry) { return entry.alive && entry.group->pid() == pid; }) ||
           std::find(others.begin(), others.end(), pid) != others.end();
  };
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (has_a_group(info.si_pid)) return;  // Its group reaps it, and then we look again.
    waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

void RankSet::finish_if_over() {
  if (!living().empty() || (!ending_ && next_ < entries_.size())) return;
  finish();
}

void RankSet::finish() {
  if (std::exchange(finished_, true)) return;
  early_ = std::exchange(ending_, true);
  ack_timer_.reset();
  grace_timer_.reset();
  last_resort_.reset();
  // What outlived its rank is nobody's any more: no further grace.
  end_rest(Deadline::in(SteadyClock::instance(), kPatience));
}

/// Again and again until none is left or `last`, with turns of the loop in between: the launcher
/// takes an agent that says nothing for a lost one.
void RankSet::end_rest(Deadline last) {
  const int survivors = kill_rest();
  if (survivors == 0 || last.expired(SteadyClock::instance().now())) return save(survivors);
  rest_ = loop_.after(kTurn, [this, last] { end_rest(last); });
}

/// How many live on.
int RankSet::kill_rest() {
  if (living().empty())
    return kill_descendants(Deadline::in(SteadyClock::instance(), kTurn), other_children());
  reap_orphans();  // The others' groups do that themselves.
  const auto family = Family::look();
  if (!family) return 1;
  const auto rest = family->below(getpid(), other_children());
  for (const pid_t pid : rest) ::kill(pid, SIGKILL);
  return static_cast<int>(rest.size());
}

void RankSet::save(int survivors) {
  children_.reset();
  if (!early_ || !timeline_) return conclude(survivors, {});
  saving_.emplace(loop_, timeline_, spec_.timeline_directory, kDiskTime,
                  [this, survivors](const auto& saved) { conclude(survivors, saved); });
}

void RankSet::conclude(int survivors, const SavedTimeline& saved) {
  if (saved.ranks != 0 || !saved.problem.empty()) report_(protocol::Recorded{saved});
  report_(protocol::Finished{survivors});
}

}  // namespace horo::launcher
