// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/set_connector.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/log.hpp"
#include "base/race_point.hpp"
#include "runtime/backends/hierarchical/observe.hpp"
#include "runtime/backends/hierarchical/path_backend.hpp"
#include "runtime/backends/module.hpp"
#include "runtime/backends/shm/shm_backend.hpp"
#include "runtime/sets/set_arrival.hpp"

namespace horo::runtime {

namespace {

/// Never zero, which Gloo takes for no limit.
Duration left(Deadline deadline) {
  return std::max<Duration>(deadline.left(SteadyClock::instance().now()),
                            std::chrono::milliseconds(1));
}

/// The job's store, for ranks that give up when one of them is lost. Remembers the keys that this
/// rank has set, so that they can be erased.
class WatchedStore final : public RendezvousStore, public ArrivalStore {
 public:
  WatchedStore(kv::Client& client, const std::function<bool()>& lost)
      : client_(client), lost_(lost) {}

  Status set(std::string_view key, std::string_view value, Deadline deadline) override {
    own_.emplace_back(key);
    return client_.set(key, value, deadline);
  }

  Result<std::int64_t> add(std::string_view key, std::int64_t delta, Deadline deadline) override {
    return client_.add(key, delta, deadline);
  }

  Result<std::int64_t> erase(std::span<const std::string> keys, Deadline deadline) override {
    return client_.erase(keys, deadline);
  }

  /// The members of `set` connect until the deadline. A member that has connected waits longer than
  /// the others, whose errors name the ranks that are missing.
  ConnectedRank connected(const Communicator& set, Deadline deadline) const {
    constexpr Duration kToSay = std::chrono::seconds(5);
    return {.name = set.name,
            .ranks = set.size(),
            .keys = own_,
            .start_timeout = left(deadline) + kToSay};
  }

  Result<std::string> get(std::string_view key, Deadline deadline) override {
    constexpr Duration kLook = std::chrono::milliseconds(100);
    const auto& clock = SteadyClock::instance();
    for (;;) {
      if (lost_()) return fail(Errc::peer_lost, "a rank was lost while ranks connected");
      const auto left = deadline.left(clock.now());
      auto value = client_.get(key, Deadline::in(clock, std::min(left, kLook)));
      if (value || value.error().code != Errc::timed_out || left <= kLook) return value;
    }
  }

 private:
  kv::Client& client_;
  const std::function<bool()>& lost_;
  std::vector<std::string> own_;
};

}  // namespace

SetConnector::SetConnector(const bootstrap::Meeting& meeting, HostMemory& memory,
                           const HostMap& hosts, ConnectOptions options, ConnectLimits limits)
    : memory_(memory),
      hosts_(hosts),
      options_(std::move(options)),
      limits_(std::move(limits)),
      me_(meeting.identity.rank),
      epoch_(meeting.epoch),
      store_(meeting.store) {
  if (options_.modules.empty()) options_.modules = module_folder();
}

Result<std::unique_ptr<Backend>> SetConnector::make(std::string_view module,
                                                    const Communicator& communicator) const {
  HORO_TRY(const ModuleEntry* const entry, load_usable_module(module, options_.modules));
  return entry->make(communicator);
}

Result<BackendChoice> SetConnector::choose(std::span<const Rank> ranks) {
  // A program may load an MPI later, by which the ranks of the job have not connected.
  if (!mpi_) mpi_ = mpi_of(observe_mpi([](const char* name) { return std::getenv(name); }));
  const auto& mpi = *mpi_;
  std::vector<int> host_of;
  for (const auto rank : ranks) host_of.push_back(hosts_.host_of(rank));
  return choose_backend(
      {.wanted = options_.operations,
       .host_of = std::move(host_of),
       .free_descriptors = free_descriptors(),
       .mpi = mpi,
       .encrypts = options_.encryption == kv::Encryption::on,
       .candidates = observe_candidates(options_.operations, mpi, options_.modules)});
}

Deadline SetConnector::deadline_of(std::uint64_t number) const {
  return number == kJobsSet ? limits_.jobs_set
                            : Deadline::in(SteadyClock::instance(), options_.start_timeout);
}

timeline::PathReason SetConnector::why_not_by_hosts() const {
  if (!options_.hierarchical) return timeline::PathReason::switched_off;
  // A sum by hosts is not in the order of the ranks.
  if (options_.deterministic) return timeline::PathReason::rank_order;
  return timeline::PathReason::none;
}

static_assert(std::size_t{kMostSlots} == 2 * kMostSets);

Communicator SetConnector::communicator_of(std::uint64_t number, std::span<const Rank> ranks,
                                           std::size_t index, RendezvousStore& store,
                                           Deadline deadline) {
  Communicator all{.name = fmt::format("horo/sets/{}/{}", epoch_, number),
                   .slot = static_cast<int>(2 * index),
                   .starting = number == kJobsSet,
                   .meeting = &store,
                   .lost = limits_.lost,
                   .secret = store_->secret,
                   .encryption = options_.encryption,
                   .shared = &shared_,
                   .interface = options_.gloo_interface,
                   .address = options_.gloo_interface.empty() ? hosts_.own().address : "",
                   .start_timeout = left(deadline),
                   .timeout = options_.gloo_timeout,
                   .rank_order = options_.deterministic,
                   .mpi_threads = options_.mpi_threads,
                   .notify = [waker = &memory_.waker()] {
                     race_point();
                     waker->wake_own();
                   }};
  for (const auto rank : ranks) {
    if (rank == me_) all.position = all.size();
    all.members.push_back(rank.value());
    all.hosts.push_back(hosts_.host_of(rank));
  }
  return all;
}

Status SetConnector::add_steps_inside(SpanningBackend& made, HierarchicalParts& parts,
                                      const Members& here, std::size_t region) const {
  for (auto* const step : {&parts.scatter, &parts.gather}) {
    HORO_TRY(auto rings,
             SetRegion::attach(memory_, region + made.rings.size(), here, RegionUse::rings));
    *step = std::make_unique<ShmBackend>(*rings);
    made.rings.push_back(std::move(rings));
  }
  return {};
}

Result<SpanningBackend> SetConnector::connect(std::uint64_t number, std::span<const Rank> ranks,
                                              const Members& here, std::size_t index) {
  HORO_TRY(auto choice, choose(ranks));
  const auto deadline = deadline_of(number);
  HORO_TRY(auto client, store_->connect(deadline));
  WatchedStore store(client, limits_.lost);
  const auto all = communicator_of(number, ranks, index, store, deadline);
  HORO_TRY(const auto hierarchy, hierarchy_of(all));
  SpanningBackend made{.table = BackendTable::of_hosts(std::move(choice), hierarchy,
                                                       {.why_not = why_not_by_hosts()})};
  const auto& name = made.table.backend();
  HORO_TRY(made.backend, make(name, all));
  log::info("runtime", "{} ranks on {} hosts: {}", all.size(), hierarchy.hosts,
            made.table.describe());
  if (!made.table.uses_hosts()) {
    HORO_TRY_STATUS(await_all(store, store.connected(all, deadline)));
    return made;
  }
  HierarchicalParts parts;
  if (auto across = across_hosts(all, hierarchy)) {
    across->start_timeout = left(deadline);
    HORO_TRY(parts.across, make(name, *across));
  }
  HORO_TRY_STATUS(await_all(store, store.connected(all, deadline)));
  HORO_TRY_STATUS(add_steps_inside(made, parts, here, kMostSets + 2 * index));
  made.backend = std::make_unique<PathBackend>(
      made.table, std::move(made.backend),
      std::make_unique<HierarchicalBackend>(std::move(parts), hierarchy));
  return made;
}

}  // namespace horo::runtime
