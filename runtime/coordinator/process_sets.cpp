// SPDX-License-Identifier: Apache-2.0
#include "runtime/coordinator/process_sets.hpp"

#include <algorithm>
#include <sched.h>

#include "base/log.hpp"
#include "runtime/backends/shm/shm_backend.hpp"
#include "runtime/coordinator/silent_ranks.hpp"
#include "runtime/recording.hpp"

namespace horo::runtime {

namespace {

/// A little more than the agent gives, where there is one that knows of the poison.
constexpr Duration kAckTime = std::chrono::milliseconds(1200);

template <std::size_t n>
std::string text_of(const std::array<char, n>& raw) {
  return {raw.begin(), std::find(raw.begin(), raw.end(), '\0')};
}

/// For the agents and the leaders, who know which rank was lost and why.
constexpr Duration kWordOfLoss = std::chrono::milliseconds(500);

/// Not only its part in this job, and not because we end.
bool has_ended(const Poison& poison) {
  switch (poison.cause) {
    case LossCause::exited:
    case LossCause::signalled:
    case LossCause::unresponsive:
    case LossCause::vanished:
      return poison.rank.value() >= 0;
    case LossCause::none:
    case LossCause::host_lost:
    case LossCause::aborted:
    case LossCause::corrupted:
    case LossCause::stalled:
    case LossCause::cut_off:
      return false;
  }
  return false;
}

}  // namespace

int ProcessSet::rank_of(Rank rank) const {
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
  return at != ranks.end() && *at == rank ? static_cast<int>(at - ranks.begin()) : -1;
}

ProcessSets::ProcessSets(HostMemory& host, OperationTable& operations, const Clock& clock)
    : host_(host), operations_(operations), clock_(clock) {}

ProcessSets::~ProcessSets() = default;

Result<SetId> ProcessSets::add(std::vector<Rank> ranks) {
  std::size_t free = 0;
  while (free < kMostSets && sets_[free].load(std::memory_order_relaxed) != nullptr) ++free;
  if (free == kMostSets) {
    return fail(Errc::resource_exhausted, "{} process sets exist; remove one first", kMostSets);
  }
  auto set = std::make_unique<ProcessSet>();
  set->id = SetId{static_cast<std::uint32_t>(free)};
  set->ranks = std::move(ranks);
  ++added_;
  HORO_TRY_STATUS(populate(*set));
  sets_[free].store(set.get(), std::memory_order_release);
  end_.store(std::max(end_.load(std::memory_order_relaxed), free + 1), std::memory_order_release);
  owned_.push_back(std::move(set));
  return SetId{static_cast<std::uint32_t>(free)};
}

Status ProcessSets::populate(ProcessSet& set) {
  Members members;
  for (int r = 0; r < host_.local_size(); ++r) {
    const LocalRank local{r};
    if ((hosts_ == nullptr && set.id == kWorld) || set.rank_of(host_.global_rank(local)) >= 0)
      members.push_back(local);
  }
  if (hosts_ != nullptr && hosts_->span(set.ranks))
    return populate_spanning(set, std::move(members));
  if (std::find(members.begin(), members.end(), host_.me()) == members.end()) return {};
  HORO_TRY(set.board, Board::attach(host_, set.id.index(), std::move(members)));
  enter(set);
  set.engine =
      std::make_unique<Engine>(*set.board, operations_, std::make_unique<ShmBackend>(*set.board));
  return {};
}

/// This rank is a member.
void ProcessSets::enter(ProcessSet& set) const {
  // The world is made first of all, and is 0.
  const auto recorded = timeline::recorded_set(set.id.value(), added_ - 1);
  set.board->record_as(recorded);
  record_member(recorded);
}

Status ProcessSets::populate_spanning(ProcessSet& set, Members members) {
  const bool member = std::find(members.begin(), members.end(), host_.me()) != members.end();
  if (member || (hosts_->leads() && !members.empty())) {
    HORO_TRY(set.board, Board::attach(host_, set.id.index(), members, BoardUse::agreement));
  }
  if (hosts_->leads()) {
    set.between_hosts = SetId{added_};
    hosts_->lead(set.between_hosts, set.ranks, set.board.get());
  }
  if (!member) return {};
  enter(set);
  auto connected = hosts_->connect(added_, set.ranks, members, kMostSets + 2 * set.id.index());
  if (!connected) {
    if (hosts_->leads()) hosts_->forget(set.between_hosts);
    return Failure(std::move(connected).error());
  }
  auto made = std::move(connected).value();
  set.rings = std::move(made.rings);
  set.engine =
      std::make_unique<Engine>(*set.board, operations_, std::move(made.backend), set.ranks);
  if (hosts_->leads()) set.engine->lead([hosts = hosts_] { hosts->look(); });
  return {};
}

void ProcessSets::remove(SetId id) {
  auto* const set = sets_[id.index()].exchange(nullptr, std::memory_order_seq_cst);
  if (set == nullptr) return;
  while (visitors_.load(std::memory_order_seq_cst) != 0) sched_yield();
  if (set->member()) {
    const auto& c = set->engine->counters();
    removed_.tensors += c.tensors;
    removed_.entries += c.entries;
    removed_.bytes += c.bytes;
    removed_.fused_bytes += c.fused_bytes;
    removed_.direct_bytes += c.direct_bytes;
  }
  if (set->between_hosts != SetId{}) hosts_->forget(set->between_hosts);
  std::erase_if(owned_, [set](const auto& owned) { return owned.get() == set; });
}

ProcessSet* ProcessSets::find(std::span<const Rank> ranks) const {
  for (const auto id : ids()) {
    auto* const set = find(id);
    if (set != nullptr &&
        std::equal(ranks.begin(), ranks.end(), set->ranks.begin(), set->ranks.end()))
      return set;
  }
  return nullptr;
}

std::vector<SetId> ProcessSets::ids() const {
  std::vector<SetId> found;
  const auto end = end_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < end; ++i) {
    if (sets_[i].load(std::memory_order_acquire) != nullptr)
      found.push_back(SetId{static_cast<std::uint32_t>(i)});
  }
  return found;
}

bool ProcessSets::progress() {
  if (poison_of(host_.header()).cause != LossCause::none) [[unlikely]]
    return observe_poison();
  bool moved = false;
  for_members([&moved](ProcessSet& set) { moved = set.engine->progress() || moved; });
  if (hosts_ != nullptr) {
    if (has_led_news()) hosts_->look();
    watch_breakdown();
  }
  return moved;
}

bool ProcessSets::has_led_news() const {
  bool any = false;
  for_sets(
      [&any](const ProcessSet& set) { any = any || (set.led() && set.board->needs_leader()); });
  return any;
}

void ProcessSets::watch_breakdown() {
  for_members([this](ProcessSet& set) {
    const auto& why = set.engine->breakdown();
    if (why) return;
    if (cut_off_.is_never()) cut_off_ = Deadline::in(clock_, kWordOfLoss);
    if (!cut_off_.expired(clock_.now())) return;
    log::error("runtime", "process set {}: {}", set.id, why.error().message);
    poison_board(host_.header(),
                 {.rank = host_.global_rank(host_.me()), .cause = LossCause::cut_off},
                 hosts_->own_name());
  });
}

bool ProcessSets::active() const {
  bool any = false;
  for_members([&any](const ProcessSet& set) { any = any || set.engine->active(); });
  return any;
}

std::uint64_t ProcessSets::bytes_in_flight() const {
  std::uint64_t sum = 0;
  for_members([&sum](const ProcessSet& set) { sum += set.engine->bytes_in_flight(); });
  return sum;
}

bool ProcessSets::polls() const {
  bool any = false;
  for_members([&any](const ProcessSet& set) {
    any = any || (set.engine->active() && set.engine->backend().caps().polls);
  });
  return any;
}

bool ProcessSets::has_news() const {
  if (poison_of(host_.header()).cause != LossCause::none) [[unlikely]]
    return !lost();
  bool any = false;
  for_sets_from_outside([&any](const ProcessSet& set) {
    any = any || (set.member() ? set.engine->has_news() : set.led() && set.board->needs_leader());
  });
  return any;
}

bool ProcessSets::has_ready() const {
  bool any = false;
  for_members_from_outside([&any](const ProcessSet& set) { any = any || set.board->has_ready(); });
  return any;
}

bool ProcessSets::can_cut() const {
  bool any = false;
  for_members_from_outside([&any](const ProcessSet& set) { any = any || set.board->can_cut(); });
  return any;
}

bool ProcessSets::withdraw() {
  bool all = true;
  for_members([&all](ProcessSet& set) {
    if (set.engine->health()) all = set.engine->withdraw() && all;
  });
  if (hosts_ == nullptr || !hosts_->leads()) return all;
  // What the host's other ranks still wait for ends with a word from here.
  for_sets([&all](ProcessSet& set) {
    if (set.board == nullptr || !set.board->spans()) return;
    set.board->leave();
    all = all && set.board->closed();
  });
  hosts_->look();
  return all;
}

int ProcessSets::wake_laggards() {
  int woken = 0;
  for_members([&woken](ProcessSet& set) {
    if (set.engine->active() || set.board->has_ready()) woken += set.board->wake_laggards();
  });
  return woken;
}

ProcessSets::Totals ProcessSets::totals() const {
  auto sum = removed_;
  for_members_from_outside([&sum](const ProcessSet& set) {
    const auto& c = set.engine->counters();
    sum.tensors += c.tensors.load(std::memory_order_relaxed);
    sum.entries += c.entries.load(std::memory_order_relaxed);
    sum.bytes += c.bytes.load(std::memory_order_relaxed);
    sum.fused_bytes += c.fused_bytes.load(std::memory_order_relaxed);
    sum.direct_bytes += c.direct_bytes.load(std::memory_order_relaxed);
  });
  return sum;
}

std::string ProcessSets::loss_message() const {
  const auto poison = poison_of(host_.header());
  const auto host = text_of(host_.header().poison_host);
  // Other hosts hear of the loss, and of the reasons where they are.
  if (poison.cause == LossCause::stalled && host_.body().stall_text.front() != '\0')
    return text_of(host_.body().stall_text);
  if (poison.rank.value() < 0) return fmt::format("the job is being stopped: {}", describe(poison));
  return fmt::format("rank {}{}{} was lost: {}", poison.rank, host.empty() ? "" : " on ", host,
                     describe(poison));
}

bool ProcessSets::observe_poison() {
  auto& header = host_.header();
  if (!acknowledged_) {
    for_members([](ProcessSet& set) { set.engine->abort(); });
    acknowledged_ = true;
    const auto poison = poison_of(header);
    record_lost(poison.rank);
    if (tell_loss_ && has_ended(poison)) tell_loss_(poison.rank);
    end_silent_at_ = clock_.now() + kAckTime;
    host_.my_slot().poison_ack.store(1, std::memory_order_seq_cst);
    ring_all(header);
    if (hosts_ != nullptr) hosts_->look();
  }
  if (lost()) return false;
  // Buffers are given back only when no peer can touch them any more.
  for (int r = 0; r < host_.local_size(); ++r) {
    const auto& slot = host_.slot(LocalRank{r});
    const auto state = slot.state.load(std::memory_order_seq_cst);
    const bool uses_board = state == RankState::attached || state == RankState::leaving;
    if (!uses_board || slot.poison_ack.load(std::memory_order_seq_cst) != 0) continue;
    if (clock_.now() >= end_silent_at_) {
      end_silent_at_ = clock_.now() + kAckTime;
      end_silent_ranks(host_);
    }
    return false;
  }
  const auto message = loss_message();
  for_members([&message](ProcessSet& set) { set.engine->fail_all(Errc::peer_lost, message); });
  lost_.store(true, std::memory_order_seq_cst);
  return true;
}

}  // namespace horo::runtime
