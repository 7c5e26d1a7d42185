// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/process_sets.hpp"

#include <algorithm>

#include "runtime/backends/device/device_router.hpp"
#include "runtime/backends/shm/shm_backend.hpp"
#include "runtime/engine/operations/recording.hpp"

namespace horo::runtime {

namespace {

void make_late(ProcessSet& set) {
  if (set.board == nullptr) return;
  auto tuning = set.board->tuning().value();
  tuning.wake_delay_ns = kLateWakeNs;
  set.board->apply(tuning);
}

/// This rank leads the set's members on its host without being one, and has news for other hosts.
bool needs_leader(const ProcessSet& set) {
  return set.led() && set.board->leader_port()->needs_leader();
}

}  // namespace

Result<ProcessSets::NewSet> ProcessSets::begin(std::vector<Rank> ranks) {
  const auto id = table_.free_id();
  if (!id)
    return fail(Errc::resource_exhausted, "{} process sets exist; remove one first", kMostSets);
  NewSet made;
  made.set_ = std::make_unique<ProcessSet>();
  made.set_->id = *id;
  made.set_->ranks = std::move(ranks);
  made.number_ = ++added_;
  made.members_ = members_here(*made.set_);
  HORO_TRY_STATUS(populate(made));
  return made;
}

Status ProcessSets::connect(NewSet& made) {
  if (!made.connects_) return {};
  auto& set = *made.set_;
  HORO_TRY(auto connected,
           hosts_->connector().connect(made.number_, set.ranks, made.members_, set.id.index()));
  set.backends = std::move(connected.table);
  set.rings = std::move(connected.rings);
  made.backend_ = std::move(connected.backend);
  return {};
}

Result<SetId> ProcessSets::finish(NewSet made, Status connected) {
  auto& set = *made.set_;
  if (!connected) {
    discard(set);
    return Failure(std::move(connected).error());
  }
  if (made.connects_) {
    SpanningSet spanning{.ranks = set.ranks,
                         .look = {},
                         .path_reason = [table = set.backends](const Bucket& bucket) {
                           return table.choose(bucket).reason;
                         }};
    auto& tree = hosts_->tree();
    if (tree.leads()) {
      spanning.look = [&tree] { tree.look(); };
      spanning.change_tuning = [&tree, number = set.between_hosts](const Tuning& tuning) {
        tree.change_tuning(number, tuning);
      };
    }
    set.engine = std::make_unique<Engine>(
        *set.board, operations_, with_devices(std::move(made.backend_), set), std::move(spanning));
  }
  if (wakes_late_) make_late(set);
  const auto id = set.id;
  table_.insert(std::move(made.set_));
  return id;
}

Result<SetId> ProcessSets::add(std::vector<Rank> ranks) {
  HORO_TRY(auto made, begin(std::move(ranks)));
  auto connected = connect(made);
  return finish(std::move(made), std::move(connected));
}

std::unique_ptr<Backend> ProcessSets::with_devices(std::unique_ptr<Backend> host,
                                                   const ProcessSet& set) const {
  if (devices_ == nullptr) return host;
  SetPlace place{.position = set.rank_of(host_.global_rank(host_.me())), .ranks = set.ranks};
  place.first_after = [own = &set](std::uint64_t after) {
    // A set whose operations have ended reads its log no further.
    const bool reads = own->engine != nullptr && own->engine->health().has_value();
    return reads ? own->board->places().first_after(after) : StartPlaces::kNone;
  };
  if (hosts_ != nullptr) {
    for (const auto rank : set.ranks) place.hosts.push_back(hosts_->map().host_of(rank));
  }
  return std::make_unique<DeviceRouter>(std::move(host), *devices_, std::move(place));
}

void ProcessSets::discard(const ProcessSet& set) {
  if (set.between_hosts != SetId{}) hosts_->tree().forget(set.between_hosts);
}

Members ProcessSets::members_here(const ProcessSet& set) const {
  Members members;
  for (int r = 0; r < host_.local_size(); ++r) {
    const LocalRank local{r};
    if ((hosts_ == nullptr && set.id == kWorld) || set.rank_of(host_.global_rank(local)) >= 0)
      members.push_back(local);
  }
  return members;
}

Status ProcessSets::populate(NewSet& made) {
  auto& set = *made.set_;
  const auto& members = made.members_;
  const bool member = std::find(members.begin(), members.end(), host_.me()) != members.end();
  if (hosts_ != nullptr && hosts_->map().spans(set.ranks)) return populate_spanning(made, member);
  if (!member) return {};
  HORO_TRY(set.board, Board::attach(host_, set.id.index(), members));
  begin_recording(set);
  set.engine = std::make_unique<Engine>(
      *set.board, operations_,
      with_devices(std::make_unique<ShmBackend>(set.board->region()), set));
  return {};
}

void ProcessSets::begin_recording(ProcessSet& set) const {
  // The world is made first of all, and has number 0.
  const auto recorded = timeline::recorded_set(set.id.value(), added_ - 1);
  set.board->record_as(recorded);
  record_member(recorded);
}

Status ProcessSets::populate_spanning(NewSet& made, bool member) {
  auto& set = *made.set_;
  auto& tree = hosts_->tree();
  if (member || (tree.leads() && !made.members_.empty())) {
    HORO_TRY(set.board,
             Board::attach(host_, set.id.index(), made.members_, BoardSpan::several_hosts));
  }
  if (tree.leads()) {
    set.between_hosts = SetId{made.number_};
    tree.lead(set.between_hosts, set.ranks, set.board.get());
  }
  if (!member) return {};
  begin_recording(set);
  made.connects_ = true;
  return {};
}

void ProcessSets::remove(SetId id) {
  const auto set = table_.take(id);
  if (set == nullptr) return;
  if (set->member()) removed_.add(set->engine->counters());
  discard(*set);
}

void ProcessSets::wake_late() {
  wakes_late_ = true;
  table_.for_all(make_late);
}

bool ProcessSets::progress() {
  if (loss_.is_poisoned()) [[unlikely]]
    return end_operations();
  bool moved = false;
  bool sound = true;
  table_.for_members([&moved, &sound](ProcessSet& set) {
    moved = set.engine->progress() || moved;
    sound = sound && set.engine->breakdown().has_value();
  });
  if (hosts_ != nullptr) call_leader();
  if (!sound) [[unlikely]]
    note_breakdowns();
  return moved;
}

void ProcessSets::call_leader() {
  bool news = false;
  table_.for_all([&news](const ProcessSet& set) { news = news || needs_leader(set); });
  if (news) hosts_->tree().look();
}

void ProcessSets::note_breakdowns() {
  const auto host = hosts_ == nullptr ? std::string() : hosts_->map().own().name;
  table_.for_members([this, &host](ProcessSet& set) {
    const auto& why = set.engine->breakdown();
    if (!why) loss_.note_breakdown(set.id, why.error(), set.engine->breakdown_cause(), host);
  });
}

bool ProcessSets::end_operations() {
  if (!loss_.acknowledged()) {
    table_.for_members([](ProcessSet& set) { set.engine->abort(); });
    loss_.tell_breakdown();
    loss_.acknowledge();
    if (hosts_ != nullptr) hosts_->tree().look();
  }
  if (loss_.lost() || !loss_.all_acknowledged()) return false;
  const auto error = loss_.error();
  const bool own = loss_.own_device_failed();
  table_.for_members([&error, own](ProcessSet& set) {
    const auto& why = set.engine->breakdown();
    set.engine->fail_all(own && !why ? why.error() : error);
  });
  loss_.end();
  return true;
}

bool ProcessSets::active() const {
  bool any = false;
  table_.for_members([&any](const ProcessSet& set) { any = any || set.engine->active(); });
  return any;
}

std::uint64_t ProcessSets::bytes_in_flight() const {
  std::uint64_t sum = 0;
  table_.for_members([&sum](const ProcessSet& set) { sum += set.engine->bytes_in_flight(); });
  return sum;
}

bool ProcessSets::polls() const {
  bool any = false;
  table_.for_members([&any](const ProcessSet& set) {
    any = any || (set.engine->active() && set.engine->backend().caps().polls);
  });
  return any;
}

template <typename Asked>
bool ProcessSets::any_set(Asked asked) const {
  if (loss_.is_poisoned()) [[unlikely]]
    return !loss_.lost();
  bool any = false;
  table_.for_all_from_outside([&any, asked](const ProcessSet& set) {
    any = any || (set.member() ? asked(*set.engine) : needs_leader(set));
  });
  return any;
}

bool ProcessSets::has_news() const {
  return any_set([](const Engine& engine) { return engine.has_news(); });
}

bool ProcessSets::is_needed() const {
  return any_set([](const Engine& engine) { return engine.is_needed(); });
}

bool ProcessSets::has_ready() const {
  bool any = false;
  table_.for_members_from_outside(
      [&any](const ProcessSet& set) { any = any || set.board->ready().has_ready(); });
  return any;
}

Duration ProcessSets::cycle_time() const {
  auto least = Duration::max();
  table_.for_members_from_outside([&least](const ProcessSet& set) {
    const auto cycle = set.board->tuning().cycle_ns();
    if (cycle != 0 && set.board->ready().has_ready()) least = std::min(least, Duration(cycle));
  });
  return least;
}

bool ProcessSets::can_cut() const {
  bool any = false;
  table_.for_members_from_outside([&any](const ProcessSet& set) {
    any = any || (set.board->cutter() != nullptr && set.board->cutter()->can_cut());
  });
  return any;
}

bool ProcessSets::withdraw() {
  bool all = true;
  table_.for_members([&all](ProcessSet& set) {
    if (set.engine->health()) all = set.engine->withdraw() && all;
  });
  if (hosts_ == nullptr || !hosts_->tree().leads()) return all;
  // The host's other ranks still wait for what this leader has to say.
  table_.for_all([&all](ProcessSet& set) {
    if (set.board == nullptr || set.board->leader_port() == nullptr) return;
    set.board->leader_port()->leave();
    all = all && set.board->leader_port()->is_closed();
  });
  hosts_->tree().look();
  return all;
}

int ProcessSets::wake_laggards(SetBells::For reason) const {
  using For = SetBells::For;
  int woken = 0;
  table_.for_members_from_outside([&woken, reason](const ProcessSet& set) {
    const auto& board = *set.board;
    const bool ready = board.ready().has_ready();
    if (ready && !board.log().has_room()) {
      woken += board.bells().wake_laggards(For::room, SetBells::Self::too);
    } else if (reason == For::shares && (ready || set.engine->active())) {
      woken += board.bells().wake_laggards(For::shares);
    }
  });
  return woken;
}

void ProcessSets::Totals::add(const EngineCounters& counters) {
  tensors += counters.tensors.load(std::memory_order_relaxed);
  entries += counters.entries.load(std::memory_order_relaxed);
  bytes += counters.bytes.load(std::memory_order_relaxed);
  fused_bytes += counters.fused_bytes.load(std::memory_order_relaxed);
  direct_bytes += counters.direct_bytes.load(std::memory_order_relaxed);
  rounded_bytes += counters.rounded_bytes.load(std::memory_order_relaxed);
}

ProcessSets::Totals ProcessSets::totals() const {
  auto sum = removed_;
  table_.for_members_from_outside(
      [&sum](const ProcessSet& set) { sum.add(set.engine->counters()); });
  return sum;
}

}  // namespace horo::runtime
