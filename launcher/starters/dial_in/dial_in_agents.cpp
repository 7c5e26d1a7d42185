// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/dial_in/dial_in_agents.hpp"

#include <algorithm>
#include <utility>

#include "launcher/starters/dial_in/dial_in_checks.hpp"
#include "launcher/starters/dial_in/dial_launcher.hpp"
#include "launcher/starters/dial_in/dialled_spec.hpp"

namespace horo::launcher {

namespace {

/// For messages that agents sent before they ended.
constexpr Duration kLastMessages = std::chrono::seconds(2);

}  // namespace

/// One host, as the job's driver sees it.
class DialInAgents::HostHandle final : public Agent {
 public:
  HostHandle(std::shared_ptr<DialInAgents> agents, std::size_t host)
      : agents_(std::move(agents)), host_(host) {}

  ~HostHandle() override { agents_->hosts_[host_].events = nullptr; }

  HostHandle(const HostHandle&) = delete;
  HostHandle& operator=(const HostHandle&) = delete;

  /// The other system starts the agents, so they wait for no order.
  void begin(const AgentSpec& /*spec*/) override {}

  /// These agents cannot be used again: each is a process of the other system's program, of which a
  /// restart starts another one. With a rank of MPI, the agent's end is that rank's end.
  bool assign(const AgentSpec& /*spec*/) override { return false; }

  /// They wait for no assignment, see make_dialled_spec().
  void release() override {}

  std::string step() const override { return {}; }

  void signal(int number) override { agents_->send(host_, protocol::Signal{number}); }

  void stop(const Poison& cause, std::string_view host) override {
    agents_->stop(host_, cause, host);
  }

  void kill() override { agents_->kill(host_); }

  /// Each agent stays until its connection is closed, because the other system watches it.
  void dismiss() override {}

  void feed_stdin(std::string_view bytes) override {
    agents_->input_.feed(agents_->ranks_.front(), bytes);
  }

  void close_stdin() override { agents_->input_.close(agents_->ranks_.front()); }

  void output_taken(Rank rank, std::size_t bytes) override { agents_->output_taken(rank, bytes); }

  /// The orders of an elastic assignment are never given: add_host refuses such a spec.
  void spawn(std::vector<WorkerIdentity> /*workers*/) override {}

  void end_worker(Rank /*worker*/) override {}

  void notice(std::uint64_t /*sequence*/, std::uint32_t /*flags*/) override {}

  void answer(std::vector<elastic::CallAnswer> /*answers*/) override {}

  void end_meeting(std::uint64_t /*generation*/) override {}

  void close() override {}

  bool ask(std::size_t part, const Question& question) override {
    return agents_->ask(host_, part, question);
  }

 private:
  const std::shared_ptr<DialInAgents> agents_;
  const std::size_t host_;
};

/// One function per message of a rank's agent, see protocol::dispatch.
struct DialInAgents::Incoming {
  DialInAgents& agents;
  Rank rank;

  void on(const protocol::Output& m) const {
    if (auto* events = host().events) events->on_output(rank, m.stream, m.bytes);
  }

  void on(const protocol::ControlGroupMade& m) const {
    auto* events = agents.events_of(rank);
    if (!std::exchange(host().control_group_known, true) && events != nullptr)
      events->on_control_group(m.control_group);
  }

  void on(const protocol::Noted& m) const {
    if (auto* events = agents.events_of(rank)) events->on_note(m.text);
  }

  void on(const protocol::Started& m) const {
    side().started(SteadyClock::instance().now());
    if (auto* events = agents.events_of(rank)) events->on_started(rank, m.pid);
  }

  void on(const protocol::Exited& m) const {
    if (side().exit_is_known() || side().is_over() || agents.failure_) return;
    side().ended();
    auto exit = m.exit;
    exit.rank = rank;
    agents.exits_.add(exit, side().started_at() + exit.lived);
  }

  void on(const protocol::SpawnFailed& m) const {
    side().ended();
    if (auto* events = agents.events_of(rank)) events->on_spawn_failed(rank, m.error);
  }

  void on(const protocol::StdinRoom&) const {
    if (auto* events = agents.events_of(rank)) events->on_stdin_room();
  }

  void on(const protocol::Recorded& m) const {
    if (auto* events = agents.events_of(rank)) events->on_timeline(m.saved);
  }

  void on(const Viewed& m) const { answer(m); }

  void on(const Piece& m) const { answer(m); }

  void on(const protocol::Finished& m) const {
    host().survivors += m.survivors;
    side().agent_gone();
    agents.release_when_over();
  }

  void on(const protocol::Failed& m) const { agents.lose(rank, m.error); }

  // The agent of a dialled-in rank has no peer to greet again, no ports to find, no other agents to
  // relay, no further assignment, no elastic one, and no batch system that ends it: these change
  // nothing.
  void on(const protocol::Hello&) const {}

  void on(const protocol::Heartbeat&) const {}

  void on(const protocol::Assigned&) const {}

  void on(const protocol::Prepared&) const {}

  void on(const protocol::EndAsked&) const {}

  void on(const protocol::Called&) const {}

  template <typename M>
    requires protocol::kIsOfRelay<M>
  void on(const M&) const {}

  void on_misdirected(const AgentMessageRow&) const {}

 private:
  Host& host() const { return agents.host_of(rank); }

  DialledRank& side() const { return agents.ranks_[rank.index()]; }

  template <typename M>
  void answer(const M& m) const {
    if (auto* events = agents.events_of(rank)) events->on_answer(agents.part_of(rank), m);
  }
};

DialInAgents::DialInAgents(Loop& loop, DialInJob job, Hooks hooks)
    : loop_(loop),
      job_(std::move(job)),
      hooks_(std::move(hooks)),
      ranks_(job_.placement.ranks.size()),
      exits_(loop, [this](const RankExit& exit) {
        if (auto* events = host_of(exit.rank).events; events != nullptr) events->on_exit(exit);
      }) {}

DialInAgents::~DialInAgents() = default;

Result<std::unique_ptr<Agent>> DialInAgents::add_host(const AgentSpec& spec, AgentEvents& events) {
  HORO_TRY_STATUS(check_is_fixed(spec, job_));
  hosts_.push_back({.spec = spec, .events = &events});
  const auto host = hosts_.size() - 1;
  if (hosts_.size() == job_.placement.hosts.size()) {
    if (auto launched = launch(); !launched) {
      failure_ = std::move(launched).error();
      starter_ended("ended", false, 0);
    }
  }
  return std::unique_ptr<Agent>(std::make_unique<HostHandle>(shared_from_this(), host));
}

Status DialInAgents::launch() {
  HORO_TRY(listener_, AgentListener::open(loop_, job_.listen_on, [this](DialledAgent agent) {
             accept(std::move(agent));
           }));
  return hooks_.launch({{kLauncherVariable, listener_->addresses()},
                        {kLauncherSecretVariable, listener_->secret()}});
}

void DialInAgents::accept(DialledAgent agent) {
  if (ending()) return;  // The agent ends when its connection is closed.
  const auto& claim = agent.claim;
  const auto index = static_cast<std::size_t>(claim.rank);
  if (claim.size != static_cast<int>(ranks_.size()) || ranks_[index].is_connected()) {
    return fail_all(
        {Errc::protocol,
         fmt::format("{} has started rank {} of {} on '{}', which does not belong to this job",
                     job_.started_by, claim.rank, claim.size, claim.host)});
  }
  if (auto words = find_mismatch(claim, job_); !words.empty())
    return fail_all({Errc::invalid_argument, std::move(words)});
  const Rank rank{claim.rank};
  auto& side = ranks_[index];
  const auto on_message = [this, rank](const protocol::Message& message) {
    Incoming incoming{*this, rank};
    protocol::dispatch<Receiver::launcher>(message, incoming);
  };
  auto link = RankLink::open(loop_, std::move(agent.connection), std::move(agent.seals),
                             make_dialled_spec(host_of(rank).spec, rank, job_),
                             {.on_message = on_message,
                              .on_lost = [this, rank](const Error& error) { lose(rank, error); }});
  if (!link) return fail_all(std::move(link).error());
  side.connected(std::move(*link));
  if (rank == Rank{0}) input_.connected(side);
}

std::size_t DialInAgents::part_of(Rank rank) const {
  return job_.placement.ranks[rank.index()].local_rank.index();
}

DialInAgents::Host& DialInAgents::host_of(Rank rank) {
  return hosts_[job_.placement.ranks[rank.index()].host];
}

AgentEvents* DialInAgents::events_of(Rank rank) {
  return failure_ ? nullptr : host_of(rank).events;
}

void DialInAgents::lose(Rank rank, const Error& error) {
  auto& side = ranks_[rank.index()];
  const bool unexpected = !side.is_over() && !side.exit_is_known();
  side.agent_gone();
  if (unexpected) fail_all(Error(error).context(fmt::format("the agent of rank {}", rank)));
  release_when_over();
  conclude_when_silent();
}

void DialInAgents::report_control_group(const ControlGroupInfo& control_group) {
  for (auto& host : hosts_) {
    if (!std::exchange(host.control_group_known, true) && host.events != nullptr)
      host.events->on_control_group(control_group);
  }
}

void DialInAgents::fail_all(Error error) {
  if (!failure_) failure_ = std::move(error);
  for (std::size_t host = 0; host < hosts_.size(); ++host)
    stop(host, {.rank = Rank{-1}, .cause = LossCause::host_lost, .detail = 0}, "this machine");
}

void DialInAgents::send(std::size_t host, const protocol::Message& message) {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (job_.placement.ranks[r].host == host && !ranks_[r].is_silent()) ranks_[r].send(message);
  }
}

void DialInAgents::stop(std::size_t host, const Poison& cause, std::string_view blamed) {
  stop_ordered_ = true;
  send(host, protocol::Stop{cause, std::string(blamed)});
  loop_.post([self = weak_from_this()] {
    if (const auto agents = self.lock()) agents->release_when_over();
  });
}

void DialInAgents::kill(std::size_t host) {
  stop_ordered_ = true;
  send(host, protocol::Kill{});
  if (hooks_.on_kill) return hooks_.on_kill();
  loop_.post([self = weak_from_this()] {
    if (const auto agents = self.lock()) agents->release_when_over();
  });
}

void DialInAgents::output_taken(Rank rank, std::size_t bytes) {
  ranks_[rank.index()].send(protocol::OutputTaken{rank, static_cast<std::uint32_t>(bytes)});
}

bool DialInAgents::ask(std::size_t host, std::size_t part, const Question& question) {
  const auto& ranks = job_.placement.hosts[host].ranks;
  if (part >= ranks.size()) return false;
  auto& side = ranks_[ranks[part].index()];
  if (!side.is_connected() || side.never_ran() || side.is_over()) return false;
  std::visit([&](const auto& words) { side.send(words); }, question);
  return true;
}

/// When no agent has anything left to do, closes the connections, so that the agents end.
void DialInAgents::release_when_over() {
  if (phase_ != Phase::running) return;
  const auto busy = [](const DialledRank& side) { return !side.is_silent(); };
  if (std::any_of(ranks_.begin(), ranks_.end(), busy)) return;
  const bool complete = std::all_of(ranks_.begin(), ranks_.end(),
                                    [](const DialledRank& side) { return side.is_connected(); });
  if (!complete && !stop_ordered_) return;
  phase_ = Phase::released;
  // A turn of the loop later, because a link may have called this.
  loop_.post([self = weak_from_this(), complete] {
    if (const auto agents = self.lock()) agents->release(complete);
  });
}

void DialInAgents::release(bool complete) {
  for (auto& side : ranks_) side.disconnect();
  if (hooks_.on_released) return hooks_.on_released(complete);
  starter_ended("ended", true, 0);
}

void DialInAgents::starter_ended(std::string how, bool by_itself, int survivors) {
  if (phase_ == Phase::draining || phase_ == Phase::concluded) return;
  phase_ = Phase::draining;
  starter_end_ = std::move(how);
  starter_ended_well_ = by_itself;
  if (!hosts_.empty()) hosts_.front().survivors += survivors;
  // Agents on this machine are gone, but their last messages may still arrive.
  timer_ = loop_.after(kLastMessages, [this] { conclude(); });
  conclude_when_silent();
}

void DialInAgents::conclude_when_silent() {
  if (phase_ != Phase::draining) return;
  if (!std::all_of(ranks_.begin(), ranks_.end(),
                   [](const DialledRank& side) { return side.is_silent(); }))
    return;
  loop_.post([self = weak_from_this()] {
    if (const auto agents = self.lock()) agents->conclude();
  });
}

void DialInAgents::conclude() {
  if (std::exchange(phase_, Phase::concluded) == Phase::concluded) return;
  timer_.reset();
  for (auto& side : ranks_) side.disconnect();
  exits_.flush();
  const auto self = shared_from_this();  // An event may destroy the last owner.
  for (std::size_t host = 0; host < hosts_.size(); ++host) conclude_host(host);
}

/// Gives the host's last events: what became of ranks whose agents did not tell it.
void DialInAgents::conclude_host(std::size_t index) {
  auto& host = hosts_[index];
  auto* const events = std::exchange(host.events, nullptr);
  if (events == nullptr) return;
  std::optional<Rank> unstarted;
  bool exit_missing = false;
  for (const auto& rank : job_.placement.hosts[index].ranks) {
    const auto& side = ranks_[rank.index()];
    exit_missing = exit_missing || side.exit_is_missing();
    if (side.never_ran() && !unstarted) unstarted = rank;
  }
  if (unstarted && (failure_ || !stop_ordered_)) {
    const Error early{Errc::unavailable,
                      fmt::format("{} {} before it had started all ranks; its own messages "
                                  "are above",
                                  job_.started_by, starter_end_)};
    events->on_spawn_failed(*unstarted, failure_.value_or(early));
  }
  if (!exit_missing) return events->on_finished(host.survivors);
  const Error torn{Errc::unavailable,
                   fmt::format("{} {} while its ranks ran", job_.started_by, starter_end_)};
  events->on_lost(failure_ && starter_ended_well_ ? *failure_ : torn);
}

}  // namespace horo::launcher
