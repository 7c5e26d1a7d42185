// SPDX-License-Identifier: Apache-2.0
#include "runtime/coordinator/tree/relay.hpp"

#include <algorithm>

namespace horo::runtime::tree {

namespace {

constexpr std::uint64_t kGone = std::uint64_t{1} << 63U;  // Told above, no entry yet.
constexpr std::uint32_t kNone = 0xffffffffU;

std::uint64_t bit(std::size_t source) {
  return std::uint64_t{1} << source;
}

void merge(Variants& into, Variants&& more) {
  for (auto& [signature, ranks] : more) into[signature].add(ranks);
}

}  // namespace

Relay::Relay(SetId set, std::vector<RankRanges> members, HostLog* host) : set_(set), host_(host) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!members[i].empty()) all_ |= bit(i);
    sources_.push_back({.members = std::move(members[i]), .joined = {}});
  }
}

Failure Relay::out_of_step(std::size_t source, std::string_view what) const {
  return fail(Errc::protocol, "process set {}: ranks {} are out of step: {}", set_,
              sources_[source].members.text(), what);
}

bool Relay::complete(std::uint64_t marks) const {
  return marks != 0 && (marks & kGone) == 0 && (marks | absent_) == all_;
}

// -- From below ---------------------------------------------------------------------------------

Status Relay::ready(std::size_t source, const Ids& ids) {
  for (const auto id : ids) HORO_TRY_STATUS(mark(source, id));
  return {};
}

Status Relay::mark(std::size_t source, std::uint32_t id) {
  if (id >= marks_.size()) return out_of_step(source, "a tensor that nobody declared is ready");
  auto& marks = marks_[id];
  if ((marks & (bit(source) | kGone)) != 0)
    return out_of_step(source, "a tensor is ready again before it was run");
  marks |= bit(source);
  if (complete(marks)) send(id);
  return {};
}

Status Relay::declare(std::size_t source, std::vector<Declaration>&& tensors) {
  for (auto& tensor : tensors) HORO_TRY_STATUS(declare_one(source, std::move(tensor)));
  return {};
}

Status Relay::declare_one(std::size_t source, Declaration&& tensor) {
  RankRanges who;
  int count = 0;
  for (const auto& [signature, ranks] : tensor.variants) {
    who.add(ranks);
    count += ranks.size();
  }
  if (who.size() != count || !sources_[source].members.contains(who))
    return out_of_step(source, "a tensor is declared for ranks that are not theirs");
  if (const auto known = numbers_.find(tensor.name); known != numbers_.end()) {
    if (((marks_[known->second] | said_[known->second].by) & (bit(source) | kGone)) != 0)
      return out_of_step(source, "a tensor is declared again before it was run");
    auto& said = said_[known->second];
    said.by |= bit(source);
    merge(said.variants, std::move(tensor.variants));
    return mark(source, known->second);
  }
  if (fresh_.size() + numbers_.size() >= kMostTensors)
    return out_of_step(source, "more names than a process set may have");
  auto& fresh = fresh_[tensor.name];
  if ((fresh.marks & (bit(source) | kGone)) != 0)
    return out_of_step(source, "a tensor is declared twice");
  fresh.marks |= bit(source);
  merge(fresh.variants, std::move(tensor.variants));
  send_if_complete(tensor.name, fresh);
  return {};
}

Status Relay::joined(std::size_t source, const RankRanges& ranks) {
  auto& from = sources_[source];
  if (!from.members.contains(ranks) || !from.joined.intersection(ranks).empty())
    return out_of_step(source, "ranks join that cannot");
  from.joined.add(ranks);
  news_.joined.add(ranks);
  if (from.joined != from.members) return {};
  absent_ |= bit(source);
  look_again();
  return {};
}

Status Relay::leave(std::size_t source, const RankRanges& ranks) {
  if (!sources_[source].members.contains(ranks))
    return out_of_step(source, "ranks leave that are not theirs");
  news_.leaving.add(ranks);
  return {};
}

void Relay::look_again() {
  for (std::uint32_t id = 0; id < marks_.size(); ++id) {
    if (complete(marks_[id])) send(id);
  }
  for (auto& [name, fresh] : fresh_) send_if_complete(name, fresh);
}

Status Relay::look(std::uint64_t depth) {
  if (host_ == nullptr) return {};
  // Asked for first: whoever leaves or joins has marked before, and that goes up before.
  const auto leaving = host_->take_leaving();
  if (!leaving.empty()) HORO_TRY_STATUS(leave(kOwn, leaving));
  if (leaving.empty() && next_ - host_->done() >= depth) return {};
  const auto joiners = host_->take_joined();
  completed_.clear();
  host_->take_completed(completed_);
  for (const auto& [id, changed] : completed_) {
    if (id.index() >= agreed_.size()) agreed_.resize(id.index() + 1, kNone);
    if (!changed && agreed_[id.index()] != kNone) {
      HORO_TRY_STATUS(mark(kOwn, agreed_[id.index()]));
      continue;
    }
    auto tensor = host_->describe(id);
    if (agreed_[id.index()] == kNone) fresh_[tensor.name].own = id;
    HORO_TRY_STATUS(declare_one(kOwn, std::move(tensor)));
  }
  return joiners.empty() ? Status() : joined(kOwn, joiners);
}

// -- Up -----------------------------------------------------------------------------------------

void Relay::send(std::uint32_t id) {
  const auto by = marks_[id];
  marks_[id] |= kGone;
  auto said = said_.extract(id);
  if (said.empty() && by == all_) {
    news_.ready.push_back(id);
    return;
  }
  // Where ranks have joined, the root hears who has submitted the tensor. Those who said nothing
  // new, all members of their source, keep what they agreed to last.
  Variants variants;
  std::uint64_t spoken = 0;
  if (!said.empty()) {
    variants = std::move(said.mapped().variants);
    spoken = said.mapped().by;
  }
  RankRanges unchanged;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if ((by & ~spoken & bit(i)) != 0) unchanged.add(sources_[i].members);
  }
  if (!unchanged.empty()) variants[std::nullopt].add(unchanged);
  news_.declared.push_back({.name = *names_[id], .variants = std::move(variants)});
}

void Relay::send_if_complete(const std::string& name, Fresh& fresh) {
  if (!complete(fresh.marks)) return;
  fresh.marks |= kGone;
  news_.declared.push_back({.name = name, .variants = std::move(fresh.variants)});
}

News Relay::take_news() {
  std::sort(news_.ready.begin(), news_.ready.end());
  return std::exchange(news_, {});
}

// -- Down ---------------------------------------------------------------------------------------

Status Relay::define(const Definition& definition) {
  if (definition.id < marks_.size() && *names_[definition.id] == definition.name) {
    // Again, since ranks have joined: a host without a mark of its own takes part as it says.
    if (host_ == nullptr || (marks_[definition.id] & bit(kOwn)) != 0) return {};
    HORO_TRY(own_[definition.id], host_->define(definition.name, definition.signature));
    return {};
  }
  if (definition.id != marks_.size() || numbers_.contains(definition.name)) {
    return fail(Errc::protocol, "process set {}: tensor '{}' gets number {} out of order", set_,
                definition.name, definition.id);
  }
  auto fresh = fresh_.extract(definition.name);
  const bool known = !fresh.empty() && (fresh.mapped().marks & kGone) != 0;
  if (!known && absent_ != all_) {
    return fail(Errc::protocol, "process set {}: tensor '{}' was agreed on without this host", set_,
                definition.name);
  }
  TensorId own;
  if (host_ != nullptr) {
    if (known && (fresh.mapped().marks & bit(kOwn)) != 0) {
      own = fresh.mapped().own;
    } else {
      HORO_TRY(own, host_->define(definition.name, definition.signature));
    }
    if (own.index() >= agreed_.size()) agreed_.resize(own.index() + 1, kNone);
    agreed_[own.index()] = definition.id;
  }
  marks_.push_back(kGone);
  own_.push_back(own);
  names_.push_back(&numbers_.emplace(definition.name, definition.id).first->first);
  return {};
}

Status Relay::accept(const LogEntry& entry) {
  if (entry.sequence != next_) {
    return fail(Errc::protocol, "process set {}: entry {} where {} was due", set_, entry.sequence,
                next_);
  }
  ++next_;
  for (const auto& definition : entry.definitions) HORO_TRY_STATUS(define(definition));
  Waiting waiting{.kind = entry.kind, .ids = {}, .rows = {}, .text = {}, .ranks = {}};
  for (const auto id : entry.ids) {
    if (id >= marks_.size() || ((marks_[id] & kGone) == 0 && absent_ != all_)) {
      return fail(Errc::protocol,
                  "process set {}: entry {} has tensor {}, which is not ready on this host", set_,
                  entry.sequence, id);
    }
    marks_[id] = 0;
    waiting.ids.push_back(own_[id]);
  }
  if (entry.kind == LogKind::join) {
    absent_ = 0;
    for (auto& source : sources_) source.joined = {};
  }
  if (host_ == nullptr) return {};
  waiting.rows = entry.rows;
  waiting.text = entry.text;
  waiting.ranks = entry.ranks;
  waiting_.push_back(std::move(waiting));
  return publish();
}

Status Relay::publish() {
  while (!waiting_.empty()) {
    const auto& next = waiting_.front();
    HORO_TRY(const bool taken, host_->publish({.kind = next.kind,
                                               .ids = next.ids,
                                               .rows = next.rows,
                                               .text = next.text,
                                               .ranks = &next.ranks}));
    if (!taken) return {};
    waiting_.pop_front();
  }
  return {};
}

}  // namespace horo::runtime::tree
