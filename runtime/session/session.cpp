// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/session.hpp"

#include <algorithm>
#include <sys/sysinfo.h>

#include <fmt/format.h>

#include "base/knobs/knobs.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "runtime/session/core_spread.hpp"
#include "runtime/session/start_barrier.hpp"

namespace horo::runtime {

namespace {

/// Ranks of one host share its memory, whatever backend was asked for.
void warn_of_unused_choice(CpuOperations wanted, const HostMemory& host) {
  if (host.me() != LocalRank{0} || host.local_size() == 1) return;
  const char* name = nullptr;
  switch (wanted) {
    case CpuOperations::tcp:
      name = "tcp";
      break;
    case CpuOperations::gloo:
      name = "gloo";
      break;
    case CpuOperations::mpi:
      name = "mpi";
      break;
    case CpuOperations::automatic:
    case CpuOperations::shm:
      return;
  }
  log::warn("runtime",
            "HORO_CPU_OPERATIONS={}: all ranks are on this host, so shm moves their tensors", name);
}

tuning::TensorTraits traits_of(const Board& board, TensorId id) {
  const auto& directory = board.directory();
  const auto& signature = directory.signatures().agreed(id);
  const auto numbers = fmt::format("/{}/{}/{}", static_cast<int>(signature.kind),
                                   static_cast<int>(signature.dtype), signature.elements);
  return {.hash = tuning::hash_more(
              tuning::hash_more(tuning::kHashStart, directory.tensor_name(id)), numbers),
          .bytes = signature.bytes()};
}

}  // namespace

Session::Session(bootstrap::Meeting meeting, const SessionOptions& options,
                 std::shared_ptr<HostMemory> host)
    : meeting_(std::move(meeting)),
      host_(std::move(host)),
      arena_(std::make_shared<Arena>(host_)),
      devices_(options.devices),
      sets_(*host_, operations_, SteadyClock::instance(),
            options.release_timeout + knobs::kAfterAgent),
      stalls_(*host_, sets_.table(), options.stalls),
      calls_(host_->my_rank()),
      driver_(*host_, sets_, stalls_, calls_),
      submitter_(*host_, sets_, operations_, stalls_, calls_, driver_),
      set_changes_(*host_, sets_, operations_, submitter_, driver_, meeting_.identity.size) {
  publish_cores(*host_);
}

Result<std::unique_ptr<Session>> Session::join(bootstrap::Meeting meeting,
                                               const SessionOptions& options) {
  const StartClock start(SteadyClock::instance(), options.start_timeout);
  const auto& me = meeting.identity;
  HORO_TRY(auto host,
           HostMemory::attach(meeting.board.value(), me.local_rank, me.rank, options.board));
  meeting.board.reset();
  if (host->local_size() != me.local_size) {
    return fail(Errc::protocol, "the board is for {} ranks, HORO_LOCAL_SIZE says {}",
                host->local_size(), me.local_size);
  }
  std::unique_ptr<Session> session(new Session(std::move(meeting), options, std::move(host)));
  HORO_TRY_STATUS(session->meet(options, start));
  session->start(options);
  return session;
}

Status Session::meet(const SessionOptions& options, StartClock start) {
  if (devices_.devices != nullptr) sets_.use(devices_);
  std::vector<Rank> everybody;
  for (int r = 0; r < meeting_.identity.size; ++r) everybody.emplace_back(r);
  const auto all_here = [&] { return await_local_ranks(*host_, meeting_, sets_.loss(), start); };
  if (meeting_.hosts.size() <= 1) {
    warn_of_unused_choice(options.hosts.connect.operations, *host_);
    HORO_TRY_STATUS(sets_.add(std::move(everybody)));
    return all_here();
  }
  HORO_TRY_STATUS(all_here());
  HORO_TRY(hosts_, JobHosts::meet(meeting_, *host_, options.hosts, start));
  sets_.connect(*hosts_);
  stalls_.connect(hosts_->tree(), hosts_->map().own().name);
  HORO_TRY_STATUS(sets_.add(std::move(everybody)));
  return {};
}

void Session::start(const SessionOptions& options) {
  sets_.loss().on_loss([this](Rank lost) { note_loss(lost); });
  const int per_core = threads_per_core(*host_);
  if (per_core > 1) operations_.lent().lend_from(*arena_, host_->local_size());
  if (hosts_ == nullptr && !options.wake_delay_set && threads_per_core(*host_, 2) > 1)
    sets_.wake_late();
  submitter_.start(hosts_ == nullptr ? nullptr : &hosts_->tree(), options.groups, devices_);
  start_tuner(options.tuner);
  // Only now: the tuner reads files, and until its thread runs this rank cannot acknowledge a loss.
  host_->peer_release().resume();
  driver_.start(SpinPolicy::choose(options.spin, per_core), options.core);
  meeting_.guard.reset();
}

void Session::start_tuner(const tuning::TunerOptions& options) {
  const auto& me = meeting_.identity;
  if (!options.on || me.host_index != 0 || me.local_rank != LocalRank{0}) return;
  const auto& world = *sets_.find(kWorld);
  auto known = options;
  known.hierarchical = options.hierarchical && hosts_ != nullptr;
  known.small_message_counts = hosts_ != nullptr;
  known.tunable.small_message = options.tunable.small_message && hosts_ != nullptr;
  known.topology =
      fmt::format("{} hosts, {} ranks, {} here on {} cores; {}; horo {}", meeting_.hosts.size(),
                  me.size, me.local_size, get_nprocs(), world.backends.backend(), version());
  if (hosts_ != nullptr) {
    if (const auto links = describe(hosts_->tree().links()); !links.empty())
      known.topology += "; links: " + links;
  }
  known.traits = [&world](TensorId id) { return traits_of(*world.board, id); };
  tuner_ = tuning::Tuner::start(known, world.board->tuning().value(), me.size);
  if (tuner_ != nullptr) world.engine->observe(tuner_.get());
}

void Session::note_loss(Rank lost) {
  host_->slot(host_->me())
      .heard.store(static_cast<std::uint32_t>(lost.value()) + 1, std::memory_order_seq_cst);
  if (meeting_.watcher) meeting_.watcher->note_loss(lost);
}

void Session::shutdown() {
  if (!submitter_.close()) return;
  if (tuner_ != nullptr) tuner_->stop();
  auto& slot = host_->slot(host_->me());
  if (driver_.started()) {
    slot.state.store(RankState::leaving, std::memory_order_seq_cst);
    // Other ranks need this one for what all have agreed on; the rest is taken back.
    driver_.stop([this] { return (sets_.withdraw() && !sets_.active()) || sets_.loss().lost(); });
  }
  host_->peer_release().end();
  slot.state.store(RankState::detached, std::memory_order_seq_cst);
  host_->body().gone.fetch_add(1, std::memory_order_seq_cst);
  host_->waker().ring_all();
  if (hosts_ != nullptr) hosts_->tree().leave();
  meeting_.watcher.reset();
}

bool Session::homogeneous() const {
  const auto& hosts = meeting_.hosts;
  return std::all_of(hosts.begin(), hosts.end(), [&](const bootstrap::JobHost& host) {
    return host.ranks.size() == hosts.front().ranks.size();
  });
}

bool Session::overlaps() const {
  return sets_.find(kWorld)->board->tuning().wake_delay_ns() < kLateWakeNs;
}

Result<kv::Secret> Session::derive_key(std::string_view purpose) const {
  if (meeting_.store == nullptr)
    return fail(Errc::not_found, "the job's ranks are on one host, so the job has no secret");
  return kv::derived_secret(meeting_.store->secret, fmt::format("horo-key {}", purpose),
                            meeting_.epoch.value());
}

SessionCounters Session::counters() const {
  const auto c = sets_.totals();
  return {.tensors = c.tensors,
          .entries = c.entries,
          .bytes = c.bytes,
          .fused_bytes = c.fused_bytes,
          .direct_bytes = c.direct_bytes,
          .sleeps = driver_.sleeps(),
          .wakes = driver_.wakes(),
          .rounded_bytes = c.rounded_bytes};
}

}  // namespace horo::runtime
