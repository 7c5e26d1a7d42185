// SPDX-License-Identifier: Apache-2.0
#include "runtime/coordinator/tree/relay.hpp"

#include <algorithm>

namespace horo::runtime::tree {

namespace {

constexpr std::uint64_t kGone = std::uint64_t{1} << 63U;  // Told above, no entry yet.

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

Result<Relay::Agreed*> Relay::find(std::size_t source, std::uint32_t number) {
  const auto place = place_of_number(number);
  if (place >= tensors_.size())
    return out_of_step(source, "a tensor that nobody declared is ready");
  auto& tensor = tensors_[place];
  if (tensor.number == number) [[likely]]
    return &tensor;
  constexpr std::uint32_t kHalf = 0x80000000U;
  if (source == kOwn || tensor.number - number >= kHalf)
    return out_of_step(source, "a tensor is ready by a number that nobody has");
  return nullptr;
}

Status Relay::mark(std::size_t source, std::uint32_t number) {
  HORO_TRY(auto* const tensor, find(source, number));
  if (tensor == nullptr) {
    ++sources_[source].owes;
    ++owed_;
    return {};
  }
  if ((tensor->marks & (bit(source) | kGone)) != 0)
    return out_of_step(source, "a tensor is ready again before it was run");
  mark(source, *tensor);
  return {};
}

void Relay::mark(std::size_t source, Agreed& tensor) {
  tensor.marks |= bit(source);
  if (complete(tensor.marks)) send(tensor);
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
  if (tensor.number != kNoNumber) return declare_agreed(source, std::move(tensor));
  if (numbers_.contains(tensor.name))
    return out_of_step(source, "a tensor that has a number is declared by its name");
  if (fresh_.size() + numbers_.size() >= kMostTensors)
    return out_of_step(source, "more names than a process set may have");
  auto& fresh = fresh_[tensor.name];
  if ((fresh.marks & (bit(source) | kGone)) != 0)
    return out_of_step(source, "a tensor is declared twice");
  if (tensor.again) HORO_TRY_STATUS(pay(source, fresh));
  fresh.marks |= bit(source);
  merge(fresh.variants, std::move(tensor.variants));
  send_if_complete(tensor.name, fresh);
  return settle();
}

Status Relay::pay(std::size_t source, Fresh& fresh) {
  if (sources_[source].owes == 0)
    return out_of_step(source, "a tensor is declared again that nobody has forgotten");
  --sources_[source].owes;
  --owed_;
  fresh.owed &= ~bit(source);
  return {};
}

Status Relay::settle() {
  if (owed_ != 0 || deferred_.empty()) return {};
  for (const auto& [source, ranks, leaves] : std::exchange(deferred_, {}))
    HORO_TRY_STATUS(leaves ? leave(source, ranks) : joined(source, ranks));
  return {};
}

Status Relay::declare_agreed(std::size_t source, Declaration&& tensor) {
  HORO_TRY(auto* const known, find(source, tensor.number));
  if (known == nullptr) {
    ++sources_[source].owes;
    ++owed_;
    return {};
  }
  if ((known->marks & (bit(source) | kGone)) != 0)
    return out_of_step(source, "a tensor is declared again before it was run");
  auto& said = said_[tensor.number];
  said.by |= bit(source);
  merge(said.variants, std::move(tensor.variants));
  mark(source, *known);
  return {};
}

Status Relay::joined(std::size_t source, const RankRanges& ranks) {
  auto& from = sources_[source];
  if (!from.members.contains(ranks) || !from.joined.intersection(ranks).empty())
    return out_of_step(source, "ranks join that cannot");
  if (owed_ != 0) {
    deferred_.push_back({.source = source, .ranks = ranks, .leaves = false});
    return {};
  }
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
  if (owed_ != 0) {
    deferred_.push_back({.source = source, .ranks = ranks, .leaves = true});
    return {};
  }
  news_.leaving.add(ranks);
  return {};
}

void Relay::look_again() {
  for (auto& tensor : tensors_) {
    if (complete(tensor.marks)) send(tensor);
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
  for (const auto& completed : completed_) HORO_TRY_STATUS(look_at(completed));
  return joiners.empty() ? Status() : joined(kOwn, joiners);
}

Status Relay::look_at(const Completed& completed) {
  const auto own = completed.id.index();
  if (own >= agreed_.size()) agreed_.resize(own + 1, kNoNumber);
  if (!completed.changed && agreed_[own] != kNoNumber) return mark(kOwn, agreed_[own]);
  return declare_own(completed.id);
}

Status Relay::declare_own(TensorId id) {
  auto tensor = host_->describe(id);
  RankRanges who;
  for (const auto& [signature, ranks] : tensor.variants) who.add(ranks);
  const bool whole = who == sources_[kOwn].members;
  if (const auto known = numbers_.find(tensor.name); known != numbers_.end()) {
    tensor.number = known->second;
    auto& agreed = tensors_[place_of_number(tensor.number)];
    agreed.own = id;
    agreed.whole = whole;
  } else {
    auto& fresh = fresh_[tensor.name];
    fresh.own = id;
    fresh.whole = whole;
  }
  if (agreed_[id.index()] != tensor.number) agreed_[id.index()] = kNoNumber;
  return declare_one(kOwn, std::move(tensor));
}

// -- Up -----------------------------------------------------------------------------------------

void Relay::send(Agreed& tensor) {
  const auto by = tensor.marks;
  tensor.marks |= kGone;
  auto said = said_.extract(tensor.number);
  if (said.empty() && by == all_) {
    news_.ready.push_back(tensor.number);
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
  news_.declared.push_back({.name = *tensor.name,
                            .number = tensor.number,
                            .again = false,
                            .variants = std::move(variants)});
}

void Relay::send_if_complete(const std::string& name, Fresh& fresh) {
  if (!complete(fresh.marks) || fresh.owed != 0) return;
  fresh.marks |= kGone;
  news_.declared.push_back({.name = name,
                            .number = kNoNumber,
                            .again = fresh.again,
                            .variants = std::move(fresh.variants)});
}

News Relay::take_news() {
  std::sort(news_.ready.begin(), news_.ready.end());
  return std::exchange(news_, {});
}

// -- Down ---------------------------------------------------------------------------------------

Status Relay::define(const Definition& definition) {
  const auto place = place_of_number(definition.id);
  if (place < tensors_.size() && tensors_[place].number == definition.id &&
      *tensors_[place].name == definition.name)
    return {};  // Again, for hosts that have joined.
  const bool in_order = place < tensors_.size()
                            ? definition.id - tensors_[place].number == kMostTensors
                            : place == tensors_.size() && definition.id == place;
  if (!in_order || numbers_.contains(definition.name)) {
    return fail(Errc::protocol, "process set {}: tensor '{}' gets number {} out of order", set_,
                definition.name, definition.id);
  }
  auto fresh = fresh_.extract(definition.name);
  const bool known = !fresh.empty() && (fresh.mapped().marks & kGone) != 0;
  if (!known && absent_ != all_) {
    return fail(Errc::protocol, "process set {}: tensor '{}' was agreed on without this host", set_,
                definition.name);
  }
  if (place == tensors_.size()) {
    tensors_.emplace_back();
  } else {
    HORO_TRY_STATUS(give_way(tensors_[place]));
  }
  auto& tensor = tensors_[place];
  tensor.number = definition.id;
  tensor.name = &numbers_.emplace(definition.name, definition.id).first->first;
  tensor.marks = kGone;
  if (!known || (fresh.mapped().marks & bit(kOwn)) == 0) return {};
  tensor.marks |= bit(kOwn);
  tensor.own = fresh.mapped().own;
  tensor.whole = fresh.mapped().whole;
  return {};
}

Status Relay::give_way(Agreed& tensor) {
  // Who has it already says so again, by its name: a child when it hears of this, the host here.
  said_.erase(tensor.number);
  auto name = numbers_.extract(*tensor.name);
  const auto own = tensor.own.index();
  if (own < agreed_.size() && agreed_[own] == tensor.number) agreed_[own] = kNoNumber;
  if ((tensor.marks & ~kGone) == 0) return {};
  auto& fresh = fresh_[name.key()];
  fresh.again = (tensor.marks & kGone) != 0;
  fresh.owed = tensor.marks & ~(kGone | bit(kOwn));
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if ((fresh.owed & bit(i)) == 0) continue;
    ++sources_[i].owes;
    ++owed_;
  }
  return (tensor.marks & bit(kOwn)) != 0 ? declare_own(tensor.own) : Status();
}

Status Relay::accept(const LogEntry& entry) {
  if (entry.sequence != next_) {
    return fail(Errc::protocol, "process set {}: entry {} where {} was due", set_, entry.sequence,
                next_);
  }
  ++next_;
  for (const auto& definition : entry.definitions) HORO_TRY_STATUS(define(definition));
  Waiting waiting{
      .kind = entry.kind, .ids = {}, .foreign = {}, .rows = {}, .text = {}, .ranks = {}};
  HORO_TRY_STATUS(translate(entry, waiting));
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

Status Relay::translate(const LogEntry& entry, Waiting& waiting) {
  std::unordered_map<std::uint32_t, const Definition*> definitions;
  for (const auto id : entry.ids) {
    const auto place = place_of_number(id);
    if (place >= tensors_.size() || tensors_[place].number != id ||
        ((tensors_[place].marks & kGone) == 0 && absent_ != all_)) {
      return fail(Errc::protocol,
                  "process set {}: entry {} has tensor {}, which is not ready on this host", set_,
                  entry.sequence, id);
    }
    auto& tensor = tensors_[place];
    const auto marks = std::exchange(tensor.marks, 0);
    const bool whole = std::exchange(tensor.whole, false);
    if (host_ == nullptr) continue;
    waiting.ids.push_back(tensor.own);
    if ((marks & bit(kOwn)) != 0) {
      // What did not go together was agreed to by nobody.
      if (whole && entry.kind == LogKind::work) agreed_[tensor.own.index()] = id;
      continue;
    }
    if (definitions.empty()) {
      for (const auto& definition : entry.definitions) definitions[definition.id] = &definition;
    }
    const auto found = definitions.find(id);
    if (found == definitions.end()) {
      return fail(Errc::protocol,
                  "process set {}: entry {} does not say what tensor {} is, for hosts that joined",
                  set_, entry.sequence, id);
    }
    waiting.foreign.push_back({.position = waiting.ids.size() - 1,
                               .name = found->second->name,
                               .signature = found->second->signature});
  }
  return {};
}

Result<bool> Relay::provide(Waiting& waiting) {
  for (const auto& tensor : waiting.foreign) {
    HORO_TRY(const auto id, host_->define(tensor.name, tensor.signature));
    if (!id) return false;
    waiting.ids[tensor.position] = *id;
  }
  return true;
}

Status Relay::publish() {
  while (!waiting_.empty()) {
    auto& next = waiting_.front();
    HORO_TRY(const bool provided, provide(next));
    if (!provided) return {};
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
