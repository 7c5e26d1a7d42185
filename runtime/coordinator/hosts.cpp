// SPDX-License-Identifier: Apache-2.0
#include "runtime/coordinator/hosts.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/log.hpp"
#include "runtime/backends/choose.hpp"
#include "runtime/backends/hierarchical.hpp"
#include "runtime/backends/module.hpp"
#include "runtime/backends/observe.hpp"
#include "runtime/backends/shm/shm_backend.hpp"
#include "runtime/coordinator/tree/start.hpp"

namespace horo::runtime {

namespace {

/// What every host of the job has room for.
tree::CutRules rules_for(const BoardParams& params) {
  tree::CutRules rules{.fusion_threshold = params.fusion_threshold,
                       .depth = params.depth,
                       .most_names = params.capacity,
                       .cycle = Duration(params.cycle_ns)};
  auto alone = params;  // A set with few members on a host has the least room.
  alone.local_size = 1;
  const auto words = BoardLayout::of(alone, false).word_count;
  rules.most_words = words / (std::uint64_t{2} * params.depth);
  rules.most_tensors = rules.most_words / (1 + kSignatureWords);
  return rules;
}

/// The job's store, for ranks that give up when one of them is lost.
class WatchedPlace final : public MeetingPlace {
 public:
  WatchedPlace(kv::Client& client, std::function<bool()> lost)
      : client_(client), lost_(std::move(lost)) {}

  Status set(std::string_view key, std::string_view value, Deadline deadline) override {
    return client_.set(key, value, deadline);
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
  const std::function<bool()> lost_;
};

/// Returns once all have connected. Who left before, as a program does that only asks for its rank,
/// would end what the others are at: Gloo's connections, or the store, where rank 0 serves it.
Status await_all(kv::Client& client, MeetingPlace& place, const Communicator& all) {
  const auto deadline = Deadline::in(SteadyClock::instance(), all.start_timeout);
  const auto all_there = fmt::format("{}/connected", all.name);
  HORO_TRY(const auto there, client.add(all_there + "/count", 1, deadline));
  if (there == all.size()) return place.set(all_there, "", deadline);
  const auto word = place.get(all_there, deadline);
  // The store goes with rank 0, which had the word before. What else ends here, the next operation
  // tells.
  if (word || word.error().code != Errc::timed_out) return {};
  return fail(Errc::timed_out,
              "not all of {} ranks have connected in time; {} had when this one had", all.size(),
              there);
}

}  // namespace

Hosts::Hosts(const bootstrap::Meeting& meeting, HostMemory& memory, HostsOptions options)
    : memory_(memory),
      options_(std::move(options)),
      me_(meeting.identity.rank),
      host_(meeting.identity.host_index),
      epoch_(meeting.epoch),
      hosts_(meeting.hosts),
      store_(meeting.store),
      host_of_(static_cast<std::size_t>(meeting.identity.size), -1),
      state_(memory) {
  if (options_.modules.empty()) options_.modules = module_folder();
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    for (const auto rank : hosts_[h].ranks) host_of_.at(rank.index()) = static_cast<int>(h);
  }
}

Hosts::~Hosts() {
  leave();
}

Result<std::unique_ptr<Hosts>> Hosts::meet(const bootstrap::Meeting& meeting, HostMemory& memory,
                                           const HostsOptions& options) {
  std::unique_ptr<Hosts> hosts(new Hosts(meeting, memory, options));
  if (memory.me() == LocalRank{0}) HORO_TRY_STATUS(hosts->start_tree(meeting));
  return hosts;
}

Status Hosts::start_tree(const bootstrap::Meeting& meeting) {
  const auto rules = rules_for(memory_.params());
  if (rules.most_words <= host_of_.size()) {
    return fail(Errc::invalid_argument,
                "a board for {} tensors has no room for the row counts of {} ranks; raise "
                "HORO_CACHE_CAPACITY",
                memory_.params().capacity, host_of_.size());
  }
  HORO_TRY(node_, tree::start_node(
                      meeting,
                      {.radix = options_.tree_radix,
                       .heartbeat_timeout = options_.heartbeat_timeout,
                       .rules = rules,
                       .settings = fmt::format("{} {} {}", static_cast<int>(options_.operations),
                                               options_.hierarchical, options_.deterministic)},
                      state_, Deadline::in(SteadyClock::instance(), options_.start_timeout),
                      [this] { return state_.loss().has_value(); }));
  return {};
}

int Hosts::host_of(Rank rank) const {
  return host_of_.at(rank.index());
}

bool Hosts::span(std::span<const Rank> ranks) const {
  return std::any_of(ranks.begin(), ranks.end(),
                     [&](Rank rank) { return host_of(rank) != host_of(ranks.front()); });
}

const std::string& Hosts::own_name() const {
  return hosts_[static_cast<std::size_t>(host_)].name;
}

void Hosts::lead(SetId set, std::span<const Rank> ranks, Board* board) {
  tree::RankRanges members;
  for (const auto rank : ranks) members.add(rank);
  auto& log = logs_[set];
  if (board != nullptr) log = std::make_unique<tree::BoardLog>(*board);
  node_->add_set(set, members, log.get());
}

void Hosts::forget(SetId set) {
  node_->remove_set(set);
  logs_.erase(set);
}

void Hosts::look() {
  if (node_ != nullptr) node_->poke();
}

void Hosts::look_soon() {
  node_->poke_soon(Duration(memory_.params().wake_delay_ns));
}

void Hosts::leave() {
  if (node_ != nullptr) node_->leave();
}

Result<std::unique_ptr<Backend>> Hosts::make(std::string_view module,
                                             const Communicator& communicator) {
  HORO_TRY(const ModuleEntry* const entry, load_usable_module(module, options_.modules));
  return entry->make(communicator);
}

Result<SpanningBackend> Hosts::connect(std::uint64_t number, std::span<const Rank> ranks,
                                       const Members& here, std::size_t region) {
  const auto mpi = mpi_of(observe_mpi([](const char* name) { return std::getenv(name); }));
  HORO_TRY(const auto choice,
           choose_backend({.wanted = options_.operations,
                           .hosts = static_cast<int>(hosts_.size()),
                           .mpi = mpi,
                           .candidates = observe_candidates(mpi, options_.modules)}));
  const auto deadline = Deadline::in(SteadyClock::instance(), options_.start_timeout);
  HORO_TRY(auto client, store_->connect(deadline));
  WatchedPlace place(client, [this] { return state_.loss().has_value(); });
  const auto& own = hosts_[static_cast<std::size_t>(host_)];
  Communicator all{.name = fmt::format("horo/sets/{}/{}", epoch_, number),
                   .meeting = &place,
                   .interface = options_.gloo_interface,
                   .address = options_.gloo_interface.empty() ? own.address : "",
                   .start_timeout = options_.start_timeout,
                   .timeout = options_.gloo_timeout,
                   .rank_order = options_.deterministic,
                   .mpi_threads = options_.mpi_threads,
                   .notify = [memory = &memory_] {
                     if (memory->my_rank().drive.load(std::memory_order_seq_cst) != drive::kAwake)
                       ring(memory->my_slot());
                   }};
  for (const auto rank : ranks) {
    if (rank == me_) all.position = all.size();
    all.members.push_back(rank.value());
    all.hosts.push_back(host_of(rank));
  }
  HORO_TRY(const auto hierarchy, hierarchy_of(all));
  SpanningBackend made;
  HORO_TRY(made.backend, make(choice.name, all));
  // A sum by hosts is no sum in rank order.
  const bool by_hosts = options_.hierarchical && hierarchy.hosts > 1 && hierarchy.owners > 1 &&
                        !options_.deterministic;
  log::info("runtime", "{} ranks on {} hosts: {}{}", all.size(), hierarchy.hosts, choice.name,
            by_hosts ? ", all-reduce by hosts" : "");
  if (!by_hosts) {
    HORO_TRY_STATUS(await_all(client, place, all));
    return made;
  }
  HierarchicalParts parts{.flat = std::move(made.backend)};
  if (const auto across = across_hosts(all, hierarchy)) {
    HORO_TRY(parts.across, make(choice.name, *across));
  }
  HORO_TRY_STATUS(await_all(client, place, all));
  for (auto* const step : {&parts.scatter, &parts.gather}) {
    HORO_TRY(auto rings, Board::attach(memory_, region + made.rings.size(), here, BoardUse::rings));
    *step = std::make_unique<ShmBackend>(*rings);
    made.rings.push_back(std::move(rings));
  }
  made.backend = std::make_unique<HierarchicalBackend>(std::move(parts), hierarchy);
  return made;
}

}  // namespace horo::runtime
