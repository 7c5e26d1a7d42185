// SPDX-License-Identifier: Apache-2.0
// Process sets at one leader: what is ready goes up, entries come down.
#include <algorithm>

#include "runtime/coordinator/tree/leader.hpp"

namespace horo::runtime::tree {

namespace {

constexpr std::size_t kMostEarlyBytes = std::size_t{64} << 20U;
constexpr std::size_t kDeclareBytes = 64 << 10;  // About, of one frame.

}  // namespace

bool Leader::concerns(const Set& set, std::size_t link) const {
  return link != kParent && !set.relay->members(link).empty();
}

void Leader::add_set(SetId id, const RankRanges& members, HostLog* log, TimePoint now) {
  now_ = now;
  RankRanges own;
  for (const auto rank : hosts_[static_cast<std::size_t>(place_.host)].ranks) own.add(rank);
  std::vector<RankRanges> sources{own.intersection(members)};
  for (std::size_t i = 1; i < links_.size(); ++i)
    sources.push_back(links_[i].ranks.intersection(members));
  const auto first = std::find_if(hosts_.begin(), hosts_.end(), [&members](const HostRanks& host) {
    return std::any_of(host.ranks.begin(), host.ranks.end(),
                       [&members](Rank rank) { return members.contains(rank); });
  });
  auto& set = sets_[id];
  set = {.members = members,
         .relay = std::make_unique<Relay>(id, std::move(sources), log),
         .agreement = nullptr,
         .paces = first - hosts_.begin() == place_.host};
  if (is_root()) set.agreement = std::make_unique<Agreement>(id, members, params_.rules);
  removed_.erase(id);
  early_bytes_ = 0;
  for (auto& early : std::exchange(early_, {})) on_frame(early.link, as_bytes(early.payload), now);
}

void Leader::remove_set(SetId id) {
  sets_.erase(id);
  removed_.insert(id);
}

Status Leader::receive_about(SetId id, std::size_t link, Frame&& frame, BytesView payload) {
  const auto found = sets_.find(id);
  if (found == sets_.end()) {
    if (removed_.contains(id)) return {};
    // Another host was faster to make this set.
    early_bytes_ += payload.size();
    if (early_bytes_ > kMostEarlyBytes)
      return fail(Errc::protocol, "{} bytes about process sets that do not exist", early_bytes_);
    early_.push_back({.link = link, .payload = {payload.begin(), payload.end()}});
    return {};
  }
  auto& set = found->second;
  if (const auto* entry = std::get_if<LogEntry>(&frame)) {
    if (const auto status = hand_down(set, *entry, payload); !status) {
      fail_here(status.error());
      return {};
    }
    move(id, set);  // Where a name gave way that somebody here has submitted.
    return {};
  }
  if (!concerns(set, link)) return fail(Errc::protocol, "it has no member of process set {}", id);
  if (const auto* done = std::get_if<Done>(&frame)) {
    if (is_root()) {
      set.agreement->done(done->entries);
    } else {
      send_raw(kParent, {payload.begin(), payload.end()});
    }
  } else if (const auto* ready = std::get_if<Ready>(&frame)) {
    HORO_TRY_STATUS(set.relay->ready(link, ready->ids));
  } else if (auto* declare = std::get_if<Declare>(&frame)) {
    HORO_TRY_STATUS(set.relay->declare(link, std::move(declare->tensors)));
  } else if (const auto* joined = std::get_if<Joined>(&frame)) {
    HORO_TRY_STATUS(set.relay->joined(link, joined->ranks));
  } else if (const auto* leave = std::get_if<Leave>(&frame)) {
    HORO_TRY_STATUS(set.relay->leave(link, leave->ranks));
  }
  move(id, set);
  return {};
}

void Leader::on_news(TimePoint now) {
  now_ = now;
  if (loss_ || left_) return;
  if (const auto loss = state_.loss()) {
    report(*loss);
    if (loss_) return;
  }
  look();
}

void Leader::look() {
  for (auto& [id, set] : sets_) {
    auto status = set.relay->publish();
    if (status) status = set.relay->look(params_.rules.depth);
    if (!status) {
      fail_here(status.error());
      return;
    }
    move(id, set);
    if (loss_) return;
  }
}

void Leader::move(SetId id, Set& set) {
  auto news = set.relay->take_news();
  if (!is_root()) {
    tell(id, set, std::move(news));
  } else if (const auto status = agree(set, std::move(news)); !status) {
    fail_here(status.error());
  }
}

Status Leader::agree(Set& set, News&& news) {
  if (set.paces) set.agreement->done(set.relay->host()->done());
  std::vector<LogEntry> entries;
  do {
    if (!news.empty()) HORO_TRY_STATUS(set.agreement->add(std::move(news), now_));
    entries.clear();
    set.agreement->cut(now_, entries);
    for (const auto& entry : entries) {
      const auto payload = encode(params_.epoch, entry);
      HORO_TRY_STATUS(hand_down(set, entry, as_bytes(payload)));
    }
    news = set.relay->take_news();  // Of names that gave way.
  } while (!news.empty());
  return {};
}

void Leader::tell(SetId id, Set& set, News&& news) {
  if (!news.ready.empty()) send(kParent, Ready{.set = id, .ids = std::move(news.ready)});
  Declare declare{.set = id, .tensors = {}};
  std::size_t bytes = 0;
  for (auto& tensor : news.declared) {
    bytes += tensor.name.size() + 64 * tensor.variants.size();
    declare.tensors.push_back(std::move(tensor));
    if (bytes < kDeclareBytes) continue;
    send(kParent, std::exchange(declare, {.set = id, .tensors = {}}));
    bytes = 0;
  }
  if (!declare.tensors.empty()) send(kParent, declare);
  // After what is ready: from here on these ranks count as having everything.
  if (!news.joined.empty()) send(kParent, Joined{.set = id, .ranks = std::move(news.joined)});
  if (!news.leaving.empty()) send(kParent, Leave{.set = id, .ranks = std::move(news.leaving)});
  if (!set.paces) return;
  const auto done = set.relay->host()->done();
  if (done == set.told) return;
  set.told = done;
  send(kParent, Done{.set = id, .entries = done});
}

Status Leader::hand_down(Set& set, const LogEntry& entry, BytesView payload) {
  for (std::size_t i = 1; i < links_.size(); ++i) {
    if (concerns(set, i)) send_raw(i, {payload.begin(), payload.end()});
  }
  return set.relay->accept(entry);
}

void Leader::depart(std::size_t link) {
  // Nothing comes from below any more: for everybody else, all ranks there have left.
  for (auto& [id, set] : sets_) {
    if (!concerns(set, link)) continue;
    if (const auto status = set.relay->leave(link, set.relay->members(link)); !status)
      fail_here(status.error());
    move(id, set);
  }
}

void Leader::orphan() {
  // Nothing comes from above any more: for everybody below, the parent's ranks have left.
  for (auto& [id, set] : sets_) {
    LogEntry entry{.set = id, .sequence = set.relay->next_sequence(), .kind = LogKind::left};
    entry.ranks = links_[kParent].ranks;
    const auto payload = encode(params_.epoch, entry);
    if (const auto status = hand_down(set, entry, as_bytes(payload)); !status) {
      fail_here(status.error());
      return;
    }
  }
}

}  // namespace horo::runtime::tree
