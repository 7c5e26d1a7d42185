// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/leader/leader_sets.hpp"

#include <algorithm>

namespace horo::runtime::tree {

namespace {

constexpr auto kParent = LeaderLinks::kParent;
constexpr std::size_t kMostEarlyBytes = std::size_t{64} << 20U;
constexpr std::size_t kDeclareBytes = 64 << 10;  // Approximate size of one frame.
constexpr std::size_t kArrivalBytes = 16;        // The most that one tensor takes without its name.

/// Index of the first host that has a member; its speed paces the set.
std::ptrdiff_t first_host(const std::vector<HostRanks>& hosts, const RankRanges& members) {
  const auto first = std::find_if(hosts.begin(), hosts.end(), [&members](const HostRanks& host) {
    return std::any_of(host.ranks.begin(), host.ranks.end(),
                       [&members](Rank rank) { return members.contains(rank); });
  });
  return first - hosts.begin();
}

/// Whether the members of each host come before those of the next one.
bool ascend(const std::vector<HostRanks>& hosts, const RankRanges& members) {
  auto last = Rank{-1};
  for (const auto& host : hosts) {
    for (const auto rank : host.ranks) {
      if (!members.contains(rank)) continue;
      if (rank < last) return false;
      last = rank;
    }
  }
  return true;
}

}  // namespace

// -- Sets ---------------------------------------------------------------------------------------

std::vector<LeaderSets::EarlyFrame> LeaderSets::add(SetId id, const RankRanges& members,
                                                    HostLog* log) {
  RankRanges own;
  for (const auto rank : context_.own_host().ranks) own.add(rank);
  std::vector<RankRanges> sources{own.intersection(members)};
  for (std::size_t i = 1; i < links_.count(); ++i)
    sources.push_back(links_.ranks(i).intersection(members));
  auto& set = sets_[id];
  CarriedInputs inputs(ascend(context_.hosts, members) ? CarriedInputs::Order::by_rank
                                                       : CarriedInputs::Order::mixed);
  set = {.aggregator =
             std::make_unique<SubtreeAggregator>(id, std::move(sources), log, std::move(inputs)),
         .root_log = nullptr,
         .paces = first_host(context_.hosts, members) == context_.place.node};
  if (context_.is_root())
    set.root_log = std::make_unique<RootLog>(id, members, context_.params.rules);
  note_arrivals(set);
  removed_.erase(id);
  early_bytes_ = 0;
  return std::exchange(early_, {});
}

void LeaderSets::remove(SetId id) {
  sets_.erase(id);
  removed_.insert(id);
}

bool LeaderSets::has_members(const Set& set, std::size_t link) const {
  return link != kParent && !set.aggregator->members(link).empty();
}

const RankRanges* LeaderSets::members(SetId id, std::size_t source) const {
  const auto found = sets_.find(id);
  return found == sets_.end() ? nullptr : &found->second.aggregator->members(source);
}

void LeaderSets::note(const Status& status) {
  if (!status && !fault_) fault_ = status.error();
}

// -- Frames -------------------------------------------------------------------------------------

Result<LeaderSets::Set*> LeaderSets::find_for(std::size_t link, SetId id, BytesView payload) {
  const auto found = sets_.find(id);
  if (found != sets_.end()) {
    if (link == kParent || has_members(found->second, link)) return &found->second;
    return fail(Errc::protocol, "it has no member of process set {}", id);
  }
  if (removed_.contains(id)) return nullptr;
  // Another host was faster to make this set.
  early_bytes_ += payload.size();
  if (early_bytes_ > kMostEarlyBytes)
    return fail(Errc::protocol, "{} bytes about process sets that do not exist", early_bytes_);
  early_.push_back({.link = link, .payload = {payload.begin(), payload.end()}});
  return nullptr;
}

Status LeaderSets::apply(Set& set, std::size_t link, Declare& declare, BytesView /*payload*/) {
  return set.aggregator->declare(link, std::move(declare.tensors));
}

Status LeaderSets::apply(Set& set, std::size_t link, Ready& ready, BytesView /*payload*/) {
  return set.aggregator->ready(link, ready.ids);
}

Status LeaderSets::apply(Set& set, std::size_t link, ReadyWithInputs& ready,
                         BytesView /*payload*/) {
  for (auto& [number, inputs] : ready.tensors) {
    // The number of an evicted name stays unknown.
    if (set.aggregator->name_of(number) != nullptr)
      set.aggregator->inputs().keep(link, number, std::move(inputs));
    HORO_TRY_STATUS(set.aggregator->ready(link, {number}));
  }
  return {};
}

Status LeaderSets::apply(Set& set, std::size_t link, Joined& joined, BytesView /*payload*/) {
  return set.aggregator->joined(link, joined.ranks);
}

Status LeaderSets::apply(Set& set, std::size_t link, Leave& leave, BytesView /*payload*/) {
  return set.aggregator->leave(link, leave.ranks);
}

Status LeaderSets::apply(Set& set, std::size_t /*link*/, Done& done, BytesView payload) {
  if (context_.is_root()) {
    set.root_log->done(done.entries);
  } else {
    links_.send_raw(kParent, {payload.begin(), payload.end()}, now_);
  }
  return {};
}

Status LeaderSets::apply(Set& set, std::size_t link, Arrived& arrived, BytesView /*payload*/) {
  auto& aggregator = *set.aggregator;
  for (const auto& tensor : arrived.tensors) {
    if (!aggregator.members(link).contains(tensor.rank))
      return fail(Errc::protocol, "rank {} of another host has submitted a tensor", tensor.rank);
  }
  aggregator.arrivals().take(link, arrived.tensors, now_, [&aggregator](std::uint32_t number) {
    return aggregator.name_of(number);
  });
  return {};
}

Status LeaderSets::apply(Set& set, std::size_t /*link*/, LogEntry& entry, BytesView payload) {
  note(send_down(set, entry, payload));
  return {};
}

// -- Events -------------------------------------------------------------------------------------

void LeaderSets::on_news(TimePoint now) {
  now_ = now;
  for (auto& [id, set] : sets_) {
    auto status = set.aggregator->publish();
    if (status) status = set.aggregator->look(context_.params.rules.depth, now_);
    note(status);
    if (fault_) return;
    pass_on(id, set);
  }
}

void LeaderSets::on_time(TimePoint now) {
  now_ = now;
  if (!context_.is_root()) return;
  for (auto& [id, set] : sets_) pass_on(id, set);
}

void LeaderSets::change_tuning(SetId id, const Tuning& tuning, TimePoint now) {
  now_ = now;
  const auto found = sets_.find(id);
  if (found == sets_.end() || found->second.root_log == nullptr) return;
  found->second.root_log->change_tuning(tuning);
  pass_on(id, found->second);
}

void LeaderSets::on_child_left(std::size_t link, TimePoint now) {
  now_ = now;
  for (auto& [id, set] : sets_) {
    if (!has_members(set, link)) continue;
    note(set.aggregator->leave(link, set.aggregator->members(link)));
    pass_on(id, set);
  }
}

void LeaderSets::on_parent_left(TimePoint now) {
  now_ = now;
  for (auto& [id, set] : sets_) {
    LogEntry entry{.set = id, .sequence = set.aggregator->next_sequence(), .kind = LogKind::left};
    entry.ranks = links_.ranks(kParent);
    const auto payload = encode(context_.params.epoch, entry);
    note(send_down(set, entry, as_bytes(payload)));
    if (fault_) return;
  }
}

TimePoint LeaderSets::last_cut(SetId id, const std::string& name) const {
  const auto found = sets_.find(id);
  return found == sets_.end() ? TimePoint::min() : found->second.root_log->last_cut(name);
}

TimePoint LeaderSets::next_cut() const {
  auto next = TimePoint::max();
  for (const auto& [id, set] : sets_) {
    if (set.root_log != nullptr) next = std::min(next, set.root_log->next_cut());
  }
  return next;
}

// -- Up and down --------------------------------------------------------------------------------

void LeaderSets::pass_on(SetId id, Set& set) {
  if (fault_) return;
  auto update = set.aggregator->take_update();
  if (context_.is_root()) {
    note(make_entries(set, std::move(update)));
  } else {
    send_up(id, set, std::move(update));
  }
}

Status LeaderSets::make_entries(Set& set, SubtreeUpdate&& update) {
  if (set.paces) set.root_log->done(set.aggregator->host()->done());
  std::vector<LogEntry> entries;
  do {
    show_arrivals_here(set, update.arrivals);
    if (!update.empty()) HORO_TRY_STATUS(set.root_log->add(std::move(update), now_));
    entries.clear();
    set.root_log->cut(now_, entries);
    for (const auto& entry : entries) {
      const auto payload = encode(context_.params.epoch, entry);
      HORO_TRY_STATUS(send_down(set, entry, as_bytes(payload)));
    }
    update = set.aggregator->take_update();  // Names that the entries have evicted.
  } while (!update.empty());
  return {};
}

void LeaderSets::send_up(SetId id, Set& set, SubtreeUpdate&& update) {
  send_arrivals(id, std::move(update.arrivals));
  if (!update.ready.empty())
    links_.send(kParent, Ready{.set = id, .ids = std::move(update.ready)}, now_);
  if (!update.carried.empty())
    links_.send(kParent, ReadyWithInputs{.set = id, .tensors = std::move(update.carried)}, now_);
  send_declarations(id, std::move(update.declared));
  // After what is ready: from here on these ranks count as having everything.
  if (!update.joined.empty())
    links_.send(kParent, Joined{.set = id, .ranks = std::move(update.joined)}, now_);
  if (!update.leaving.empty())
    links_.send(kParent, Leave{.set = id, .ranks = std::move(update.leaving)}, now_);
  if (!set.paces) return;
  const auto done = set.aggregator->host()->done();
  if (done == set.reported) return;
  set.reported = done;
  links_.send(kParent, Done{.set = id, .entries = done}, now_);
}

void LeaderSets::send_declarations(SetId id, std::vector<Declaration>&& tensors) {
  Declare declare{.set = id, .tensors = {}};
  std::size_t bytes = 0;
  for (auto& tensor : tensors) {
    bytes += tensor.name.size() + 64 * tensor.variants.size();
    declare.tensors.push_back(std::move(tensor));
    if (bytes < kDeclareBytes) continue;
    links_.send(kParent, std::exchange(declare, {.set = id, .tensors = {}}), now_);
    bytes = 0;
  }
  if (!declare.tensors.empty()) links_.send(kParent, declare, now_);
}

// -- Arrivals -----------------------------------------------------------------------------------

void LeaderSets::show_arrivals(bool wanted) {
  shows_arrivals_ = wanted;
  for (auto& [id, set] : sets_) note_arrivals(set);
}

void LeaderSets::note_arrivals(Set& set) const {
  using Of = ArrivalNotes::Of;
  set.aggregator->arrivals().note(!shows_arrivals_     ? Of::none
                                  : context_.is_root() ? Of::children
                                                       : Of::all);
}

void LeaderSets::send_arrivals(SetId id, std::vector<ArrivalsOf>&& tensors) {
  Arrived arrived{.set = id, .tensors = {}};
  std::size_t bytes = 0;
  for (auto& [name, number, own, arrivals] : tensors) {
    const auto last =
        std::max_element(arrivals.begin(), arrivals.end(),
                         [](const KnownArrival& a, const KnownArrival& b) { return a.at < b.at; });
    const auto ago = std::chrono::duration_cast<std::chrono::microseconds>(now_ - last->at);
    bytes += name.size() + kArrivalBytes;
    arrived.tensors.push_back(
        {.name = std::move(name),
         .number = number,
         .rank = last->rank,
         .us_ago = static_cast<std::uint64_t>(std::max<std::int64_t>(0, ago.count()))});
    if (bytes < kDeclareBytes) continue;
    links_.send(kParent, std::exchange(arrived, {.set = id, .tensors = {}}), now_);
    bytes = 0;
  }
  if (!arrived.tensors.empty()) links_.send(kParent, arrived, now_);
}

void LeaderSets::show_arrivals_here(Set& set, const std::vector<ArrivalsOf>& tensors) {
  auto* const host = set.aggregator->host();
  if (host == nullptr) return;
  std::vector<LastSubmission> others;
  for (const auto& tensor : tensors) {
    if (!tensor.own) continue;
    others.clear();
    for (const auto& [rank, at] : tensor.arrivals)
      others.push_back({.rank = rank, .ago = std::max(Duration::zero(), now_ - at)});
    host->show_arrivals(*tensor.own, others);
  }
}

Status LeaderSets::send_down(Set& set, const LogEntry& entry, BytesView payload) {
  // Children first: the hosts below wait for it, too.
  for (std::size_t i = 1; i < links_.count(); ++i) {
    if (has_members(set, i)) links_.send_raw(i, {payload.begin(), payload.end()}, now_);
  }
  return set.aggregator->accept(entry);
}

}  // namespace horo::runtime::tree
