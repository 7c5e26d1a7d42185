// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_run.hpp"

#include <algorithm>
#include <sys/wait.h>
#include <utility>

#include "base/version.hpp"
#include "launcher/job/report.hpp"
#include "launcher/starters/local/local_starter.hpp"

namespace horo::launcher {

namespace {

using namespace std::chrono_literals;

constexpr Duration kMpirunTime = 5s;  ///< For mpirun to end once all its ranks have.
constexpr Duration kSameMoment = 50ms;
constexpr Duration kLastWords = 2s;  ///< For what agents have said before they ended.

}  // namespace

/// mpirun is the only rank of an agent of its own.
class MpiRun::MpirunEvents final : public AgentEvents {
 public:
  explicit MpirunEvents(MpiRun& run) : run_(run) {}

  void on_cover(const Cover& cover) override {
    if (!run_.launch_.here) return;
    for (auto& host : run_.hosts_) {
      if (!std::exchange(host.covered, true) && host.events != nullptr)
        host.events->on_cover(cover);
    }
  }

  void on_started(Rank, int) override {}

  void on_spawn_failed(Rank, const Error& error) override {
    run_.fail_all(Error(error).context(run_.launch_.name));
  }

  void on_output(Rank, Stream, std::string_view bytes) override { run_.mpirun_said(bytes); }

  void on_exit(const RankExit& exit) override { run_.mpirun_exit_ = exit; }

  void on_stdin_room() override {}

  void on_finished(int survivors) override { run_.mpirun_ended(survivors); }

  void on_lost(const Error& error) override {
    run_.fail_all(error);
    run_.mpirun_ended(0);
  }

 private:
  MpiRun& run_;
};

MpiRun::MpiRun(Loop& loop, MpiLaunch launch)
    : loop_(loop),
      launch_(std::move(launch)),
      starter_(make_local_starter(loop)),
      events_(std::make_unique<MpirunEvents>(*this)) {
  ranks_.resize(launch_.placement.ranks.size());
}

MpiRun::~MpiRun() = default;

Status MpiRun::probe() const {
  return starter_->probe();
}

std::size_t MpiRun::add_host(const AgentSpec& spec, AgentEvents& events) {
  hosts_.push_back({.spec = spec, .events = &events});
  if (hosts_.size() < launch_.placement.hosts.size()) return hosts_.size() - 1;
  if (auto launched = launch(); !launched) {
    broken_ = std::move(launched).error();
    mpirun_ended(0);
  }
  return hosts_.size() - 1;
}

Status MpiRun::launch() {
  HORO_TRY(door_,
           Door::open(loop_, launch_.here, [this](UniqueFd connection, const MpiPlace& place) {
             greet(std::move(connection), place);
           }));
  const auto& first = hosts_.front().spec;
  AgentSpec spec{.host = "this machine",
                 .command = launch_.command,
                 .directory = first.directory,
                 .environment = launch_.environment,
                 .ranks = {{.hostname = first.host,
                            .job_id = first.ranks.front().job_id,
                            .launcher_version = version_code()}},
                 .grace = first.grace,
                 .secret = first.secret};
  spec.environment.emplace_back(kDoorVariable, door_->addresses());
  spec.environment.emplace_back(kDoorSecretVariable, door_->secret());
  HORO_TRY(mpirun_, starter_->start(spec, *events_));
  return {};
}

void MpiRun::greet(UniqueFd connection, const MpiPlace& place) {
  if (stopping_ || let_go_ || mpirun_gone_) return;  // The agent ends when its connection does.
  const auto index = static_cast<std::size_t>(place.rank);
  if (place.size != static_cast<int>(ranks_.size()) || ranks_[index].link != nullptr) {
    return fail_all(
        {Errc::protocol,
         fmt::format("{} has started rank {} of {} on '{}', which is none of this job's",
                     launch_.name, place.rank, place.size, place.host)});
  }
  if (auto words = misplaced(place); !words.empty())
    return fail_all({Errc::invalid_argument, std::move(words)});
  const Rank rank{place.rank};
  auto& side = ranks_[index];
  auto link =
      RankLink::open(loop_, std::move(connection), spec_of(rank),
                     {.on_message = [this, rank](const auto& message) { hear(rank, message); },
                      .on_lost = [this, rank](const Error& error) { lose(rank, error); }});
  if (!link) return fail_all(std::move(link).error());
  side.link = std::move(*link);
  if (rank == Rank{0} && early_fed_) feed_stdin(std::exchange(early_stdin_, {}));
  if (rank == Rank{0} && early_close_) side.link->send(protocol::CloseStdin{});
}

/// What the plan and mpirun do not agree on; empty: nothing.
std::string MpiRun::misplaced(const MpiPlace& place) const {
  const auto& planned = launch_.placement.ranks[static_cast<std::size_t>(place.rank)];
  if (place.local_rank < 0 || place.local_size < 0) return {};
  if (place.local_rank == planned.local_rank.value() && place.local_size == planned.local_size)
    return {};
  return fmt::format(
      "{} has made rank {} number {} of {} on '{}', the plan number {} of {} on '{}'; leave "
      "placement out of --mpi-args and --binding-args, and say it with -H and --map-by",
      launch_.name, place.rank, place.local_rank, place.local_size, place.host, planned.local_rank,
      planned.local_size, launch_.placement.hosts[planned.host].name);
}

AgentSpec MpiRun::spec_of(Rank rank) const {
  const auto& planned = launch_.placement.ranks[rank.index()];
  auto spec = hosts_[planned.host].spec;
  auto identity = spec.ranks[planned.local_rank.index()];
  // The store is where MPI says; the variables have come with mpirun.
  identity.rendezvous.clear();
  spec.ranks = {std::move(identity)};
  spec.common.reset();
  spec.environment.clear();
  return spec;
}

void MpiRun::hear(Rank rank, const protocol::Message& message) {
  auto& side = ranks_[rank.index()];
  auto& host = host_of(rank);
  // After an end that nobody could tell, what others come to is its consequence.
  auto* const events = broken_ ? nullptr : host.events;
  if (const auto* output = std::get_if<protocol::Output>(&message)) {
    if (host.events != nullptr) host.events->on_output(rank, output->stream, output->bytes);
  } else if (const auto* covered = std::get_if<protocol::Covered>(&message)) {
    if (!std::exchange(host.covered, true) && events != nullptr) events->on_cover(covered->cover);
  } else if (const auto* started = std::get_if<protocol::Started>(&message)) {
    side.started = true;
    side.started_at = SteadyClock::instance().now();
    if (events != nullptr) events->on_started(rank, started->pid);
  } else if (const auto* exited = std::get_if<protocol::Exited>(&message)) {
    if (side.ended || broken_) return;
    side.ended = true;
    auto exit = exited->exit;
    exit.rank = rank;
    settle(exit);
  } else if (const auto* failed_spawn = std::get_if<protocol::SpawnFailed>(&message)) {
    side.ended = true;
    if (events != nullptr) events->on_spawn_failed(rank, failed_spawn->error);
  } else if (std::holds_alternative<protocol::StdinRoom>(message)) {
    if (events != nullptr) events->on_stdin_room();
  } else if (const auto* recorded = std::get_if<protocol::Recorded>(&message)) {
    if (events != nullptr) events->on_timeline(recorded->saved);
  } else if (const auto* viewed = std::get_if<Viewed>(&message)) {
    if (events != nullptr) events->on_answer(part_of(rank), *viewed);
  } else if (const auto* piece = std::get_if<Piece>(&message)) {
    if (events != nullptr) events->on_answer(part_of(rank), *piece);
  } else if (const auto* finished = std::get_if<protocol::Finished>(&message)) {
    host.survivors += finished->survivors;
    side.over = true;
    let_go_when_over();
  } else if (const auto* failed = std::get_if<protocol::Failed>(&message)) {
    lose(rank, failed->error);
  }
}

void MpiRun::settle(const RankExit& exit) {
  exits_.push_back(exit);
  if (settling_) return;
  if (exit.wait_status == 0 && !exit.undetached) return tell_exits();
  settling_ = loop_.after(kSameMoment, [this] { tell_exits(); });
}

void MpiRun::tell_exits() {
  settling_.reset();
  auto exits = std::exchange(exits_, {});
  // Who lost a peer ends in good order; who was lost did not.
  const auto key = [this](const RankExit& exit) {
    const bool torn_away = exit.undetached || WIFSIGNALED(exit.wait_status);
    return std::pair(!torn_away, ranks_[exit.rank.index()].started_at + exit.lived);
  };
  std::stable_sort(exits.begin(), exits.end(),
                   [&](const RankExit& a, const RankExit& b) { return key(a) < key(b); });
  for (const auto& exit : exits) {
    if (auto* events = host_of(exit.rank).events; events != nullptr) events->on_exit(exit);
  }
}

void MpiRun::lose(Rank rank, const Error& error) {
  auto& side = ranks_[rank.index()];
  if (!std::exchange(side.over, true) && !side.ended)
    fail_all(Error(error).context(fmt::format("the agent of rank {}", rank)));
  let_go_when_over();
  conclude_when_silent();
}

/// The job cannot go on, and no rank is the first to blame.
void MpiRun::fail_all(Error error) {
  if (!broken_) broken_ = std::move(error);
  stop_all({.rank = Rank{-1}, .cause = LossCause::host_lost, .detail = 0}, "this machine");
}

void MpiRun::send(std::size_t host, const protocol::Message& message) {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (launch_.placement.ranks[r].host == host && ranks_[r].link != nullptr && !ranks_[r].over)
      ranks_[r].link->send(message);
  }
}

void MpiRun::signal(std::size_t host, int number) {
  send(host, protocol::Signal{number});
}

void MpiRun::stop(std::size_t host, const Poison& cause, std::string_view blamed) {
  stopping_ = true;
  send(host, protocol::Stop{cause, std::string(blamed)});
  loop_.post([self = weak_from_this()] {
    if (const auto run = self.lock()) run->let_go_when_over();
  });
}

void MpiRun::stop_all(const Poison& cause, std::string_view blamed) {
  for (std::size_t host = 0; host < hosts_.size(); ++host) stop(host, cause, blamed);
}

void MpiRun::kill(std::size_t host) {
  stopping_ = true;
  send(host, protocol::Kill{});
  if (mpirun_) mpirun_->kill();
}

void MpiRun::feed_stdin(std::string_view bytes) {
  if (ranks_.front().link == nullptr) {
    early_fed_ = true;
    early_stdin_.append(bytes);
    return;
  }
  do {
    const auto part = bytes.substr(0, protocol::kMaxChunk);
    ranks_.front().link->send(protocol::FeedStdin{part});
    bytes.remove_prefix(part.size());
  } while (!bytes.empty());
}

void MpiRun::close_stdin() {
  early_close_ = true;
  if (ranks_.front().link != nullptr) ranks_.front().link->send(protocol::CloseStdin{});
}

void MpiRun::output_taken(Rank rank, std::size_t bytes) {
  const auto& link = ranks_[rank.index()].link;
  if (link != nullptr) link->send(protocol::OutputTaken{rank, static_cast<std::uint32_t>(bytes)});
}

bool MpiRun::ask(std::size_t host, std::size_t part, const Question& question) {
  const auto& ranks = launch_.placement.hosts[host].ranks;
  if (part >= ranks.size()) return false;
  const auto& side = ranks_[ranks[part].index()];
  if (side.link == nullptr || !side.started || side.over) return false;
  std::visit([&](const auto& words) { side.link->send(words); }, question);
  return true;
}

void MpiRun::forget(std::size_t host) {
  hosts_[host].events = nullptr;
}

void MpiRun::let_go_when_over() {
  if (let_go_ || mpirun_gone_) return;
  bool all = true;
  for (const auto& side : ranks_) {
    if (side.link != nullptr && !side.over) return;
    all = all && side.link != nullptr;
  }
  if (!all && !stopping_) return;
  let_go_ = true;
  // A turn of the loop later: this may be called by one of them.
  loop_.post([self = weak_from_this(), all] {
    const auto run = self.lock();
    if (!run) return;
    for (auto& side : run->ranks_) side.link.reset();
    const auto end = [self] {
      const auto waiting = self.lock();
      if (waiting && waiting->mpirun_)
        waiting->mpirun_->stop({.rank = Rank{-1}, .cause = LossCause::aborted, .detail = 0},
                               "this machine");
    };
    if (!all) return end();
    run->patience_ = run->loop_.after(kMpirunTime, end);
  });
}

void MpiRun::mpirun_said(std::string_view bytes) {
  // What it thinks of an end that we have brought about ourselves is no news.
  lines_.feed(bytes, [this](const LinePiece& piece) {
    if (!stopping_ && !let_go_ && !piece.body.empty()) launch_.say(piece.body);
  });
}

void MpiRun::mpirun_ended(int survivors) {
  if (mpirun_gone_) return;
  mpirun_gone_ = true;
  lines_.finish([this](const LinePiece& piece) {
    if (!stopping_ && !let_go_) launch_.say(piece.body);
  });
  if (!hosts_.empty()) hosts_.front().survivors += survivors;
  // Agents on this machine are gone; what they have said may still be on its way.
  patience_ = loop_.after(kLastWords, [this] { conclude(); });
  conclude_when_silent();
}

void MpiRun::conclude_when_silent() {
  if (!mpirun_gone_) return;
  const bool silent = std::all_of(ranks_.begin(), ranks_.end(), [](const RankSide& side) {
    return side.link == nullptr || side.over;
  });
  if (!silent) return;
  loop_.post([self = weak_from_this()] {
    if (const auto run = self.lock()) run->conclude();
  });
}

std::string MpiRun::mpirun_end() const {
  if (!mpirun_exit_) return "ended";
  const int status = mpirun_exit_->wait_status;
  if (status == 0 || WIFEXITED(status))
    return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  return fmt::format("was {}", describe(*mpirun_exit_));
}

void MpiRun::conclude() {
  if (std::exchange(concluded_, true)) return;
  patience_.reset();
  for (auto& side : ranks_) side.link.reset();
  tell_exits();
  const auto self = shared_from_this();  // An event may let the last owner go.
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    auto& host = hosts_[h];
    auto* const events = std::exchange(host.events, nullptr);
    if (events == nullptr) continue;
    std::optional<Rank> unstarted;
    bool torn = false;
    for (const auto& rank : launch_.placement.hosts[h].ranks) {
      const auto& side = ranks_[rank.index()];
      torn = torn || (side.started && !side.ended);
      if (!side.started && !side.ended && !unstarted) unstarted = rank;
    }
    if (unstarted && (broken_ || !stopping_)) {
      events->on_spawn_failed(
          *unstarted, broken_.value_or(Error{
                          Errc::unavailable,
                          fmt::format("{} {} before it had started all ranks; its own words stand "
                                      "above",
                                      launch_.name, mpirun_end())}));
    }
    if (torn) {
      auto error = broken_ && mpirun_exit_ && mpirun_exit_->wait_status == 0
                       ? *broken_
                       : Error{Errc::unavailable, fmt::format("{} {} while its ranks ran",
                                                              launch_.name, mpirun_end())};
      events->on_lost(error);
      continue;
    }
    events->on_finished(host.survivors);
  }
}

}  // namespace horo::launcher
