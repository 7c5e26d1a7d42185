// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/agreement/subtree_aggregator.hpp"

#include <algorithm>

namespace horo::runtime::tree {

namespace {

/// Mark of a tensor that was sent up and is in no entry yet.
constexpr std::uint64_t kSentUp = std::uint64_t{1} << 63U;

std::uint64_t bit(std::size_t source) {
  return std::uint64_t{1} << source;
}

void merge(Variants& into, Variants&& more) {
  for (auto& [signature, ranks] : more) into[signature].add(ranks);
}

}  // namespace

SubtreeAggregator::SubtreeAggregator(SetId set, std::vector<RankRanges> members, HostLog* host,
                                     CarriedInputs inputs)
    : set_(set), host_(host), inputs_(std::move(inputs)) {
  if (host != nullptr) queue_.emplace(*host);
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!members[i].empty()) all_ |= bit(i);
    redeclarations_.add_source();
    sources_.push_back({.members = std::move(members[i]), .joined = {}});
  }
}

Failure SubtreeAggregator::out_of_step(std::size_t source, std::string_view what) const {
  return fail(Errc::protocol, "process set {}: ranks {} are out of step: {}", set_,
              sources_[source].members.text(), what);
}

bool SubtreeAggregator::complete(std::uint64_t marks) const {
  return marks != 0 && (marks & kSentUp) == 0 && (marks | absent_) == all_;
}

// -- From below ---------------------------------------------------------------------------------

Status SubtreeAggregator::ready(std::size_t source, const Ids& ids) {
  for (const auto id : ids) HORO_TRY_STATUS(mark(source, id));
  return {};
}

Result<SubtreeAggregator::Agreed*> SubtreeAggregator::find(std::size_t source,
                                                           std::uint32_t number) {
  const auto place = place_of_number(number);
  if (place >= tensors_.size())
    return out_of_step(source, "a tensor that no host declared is ready");
  auto& tensor = tensors_[place];
  if (tensor.number == number) [[likely]]
    return &tensor;
  constexpr std::uint32_t kHalf = 0x80000000U;
  if (source == kOwn || tensor.number - number >= kHalf)
    return out_of_step(source, "a tensor is ready under a number that no tensor has");
  return nullptr;
}

Status SubtreeAggregator::mark(std::size_t source, std::uint32_t number) {
  HORO_TRY(auto* const tensor, find(source, number));
  if (tensor == nullptr) {
    redeclarations_.expect(source);
    return {};
  }
  if ((tensor->marks & (bit(source) | kSentUp)) != 0)
    return out_of_step(source, "a tensor is ready again before it was run");
  mark(source, *tensor);
  return {};
}

void SubtreeAggregator::mark(std::size_t source, Agreed& tensor) {
  tensor.marks |= bit(source);
  if (complete(tensor.marks)) send_up(tensor);
}

Status SubtreeAggregator::declare(std::size_t source, std::vector<Declaration>&& tensors) {
  for (auto& tensor : tensors) HORO_TRY_STATUS(declare_one(source, std::move(tensor)));
  return {};
}

Status SubtreeAggregator::declare_one(std::size_t source, Declaration&& tensor) {
  RankRanges declarers;
  int count = 0;
  for (const auto& [signature, ranks] : tensor.variants) {
    declarers.add(ranks);
    count += ranks.size();
  }
  if (declarers.size() != count || !sources_[source].members.contains(declarers))
    return out_of_step(source, "a tensor is declared for ranks of another host");
  return tensor.number != kNoNumber ? declare_agreed(source, std::move(tensor))
                                    : declare_new(source, std::move(tensor));
}

Status SubtreeAggregator::declare_new(std::size_t source, Declaration&& tensor) {
  if (numbers_.contains(tensor.name))
    return out_of_step(source, "a tensor that has a number is declared by its name");
  if (new_names_.size() + numbers_.size() >= kMostTensors)
    return out_of_step(source, "more names than a process set may have");
  auto& known = new_names_[tensor.name];
  if ((known.marks & (bit(source) | kSentUp)) != 0)
    return out_of_step(source, "a tensor is declared twice");
  if (tensor.again) {
    if (!redeclarations_.take(source))
      return out_of_step(source, "a tensor is declared again whose number was not evicted");
    known.redeclaring &= ~bit(source);
  }
  known.marks |= bit(source);
  merge(known.variants, std::move(tensor.variants));
  send_if_complete(tensor.name, known);
  return apply_held_back();
}

Status SubtreeAggregator::apply_held_back() {
  for (const auto& [source, ranks, leaves] : redeclarations_.release())
    HORO_TRY_STATUS(leaves ? leave(source, ranks) : joined(source, ranks));
  return {};
}

Status SubtreeAggregator::declare_agreed(std::size_t source, Declaration&& tensor) {
  HORO_TRY(auto* const known, find(source, tensor.number));
  if (known == nullptr) {
    redeclarations_.expect(source);
    return {};
  }
  if ((known->marks & (bit(source) | kSentUp)) != 0)
    return out_of_step(source, "a tensor is declared again before it was run");
  auto& declared = declared_[tensor.number];
  declared.by |= bit(source);
  merge(declared.variants, std::move(tensor.variants));
  mark(source, *known);
  return {};
}

Status SubtreeAggregator::joined(std::size_t source, const RankRanges& ranks) {
  auto& from = sources_[source];
  if (!from.members.contains(ranks) || !from.joined.intersection(ranks).empty())
    return out_of_step(source, "ranks join that have joined or are of another host");
  if (redeclarations_.pending()) {
    redeclarations_.hold_back({.source = source, .ranks = ranks, .leaves = false});
    return {};
  }
  from.joined.add(ranks);
  update_.joined.add(ranks);
  if (from.joined != from.members) return {};
  absent_ |= bit(source);
  send_all_complete();
  return {};
}

Status SubtreeAggregator::leave(std::size_t source, const RankRanges& ranks) {
  if (!sources_[source].members.contains(ranks))
    return out_of_step(source, "ranks leave that are of another host");
  if (redeclarations_.pending()) {
    redeclarations_.hold_back({.source = source, .ranks = ranks, .leaves = true});
    return {};
  }
  update_.leaving.add(ranks);
  return {};
}

void SubtreeAggregator::send_all_complete() {
  for (auto& tensor : tensors_) {
    if (complete(tensor.marks)) send_up(tensor);
  }
  for (auto& [name, tensor] : new_names_) send_if_complete(name, tensor);
}

Status SubtreeAggregator::look(std::uint64_t depth, TimePoint now) {
  if (host_ == nullptr) return {};
  // First, because a rank marks its last tensors before it leaves or joins: those go up before it.
  const auto leaving = host_->take_leaving();
  if (!leaving.empty()) HORO_TRY_STATUS(leave(kOwn, leaving));
  if (leaving.empty() && next_ - host_->done() >= depth) return {};
  const auto joiners = host_->take_joined();
  completed_.clear();
  host_->take_completed(completed_);
  for (const auto& completed : completed_) {
    HORO_TRY_STATUS(look_at(completed, now));
  }
  return joiners.empty() ? Status() : joined(kOwn, joiners);
}

Status SubtreeAggregator::look_at(const Completed& completed, TimePoint now) {
  const auto own = completed.id.index();
  if (own >= agreed_.size()) agreed_.resize(own + 1, kNoNumber);
  if (arrivals_.notes_own()) {
    const auto* const name = name_of(agreed_[own]);
    const auto last = host_->last_submission(completed.id);
    arrivals_.take(kOwn, name != nullptr ? *name : host_->describe(completed.id).name,
                   {.rank = last.rank, .at = now - last.ago});
  }
  if (completed.changed || agreed_[own] == kNoNumber) return declare_own(completed.id);
  inputs_.keep_own(*host_, completed.id, agreed_[own], completed_.size());
  return mark(kOwn, agreed_[own]);
}

Status SubtreeAggregator::declare_own(TensorId id) {
  auto tensor = host_->describe(id);
  RankRanges declarers;
  for (const auto& [signature, ranks] : tensor.variants) declarers.add(ranks);
  const bool whole = declarers == sources_[kOwn].members;
  if (const auto known = numbers_.find(tensor.name); known != numbers_.end()) {
    tensor.number = known->second;
    auto& agreed = tensors_[place_of_number(tensor.number)];
    agreed.own = id;
    agreed.whole = whole;
  } else {
    auto& added = new_names_[tensor.name];
    added.own = id;
    added.whole = whole;
  }
  if (agreed_[id.index()] != tensor.number) agreed_[id.index()] = kNoNumber;
  return declare_one(kOwn, std::move(tensor));
}

const std::string* SubtreeAggregator::name_of(std::uint32_t number) const {
  const auto place = place_of_number(number);
  return place < tensors_.size() && tensors_[place].number == number ? tensors_[place].name
                                                                     : nullptr;
}

// -- Up -----------------------------------------------------------------------------------------

void SubtreeAggregator::send_up(Agreed& tensor) {
  const auto by = tensor.marks;
  tensor.marks |= kSentUp;
  const auto own = (by & bit(kOwn)) != 0 ? std::optional(tensor.own) : std::nullopt;
  arrivals_.complete(*tensor.name, {.number = tensor.number, .own = own}, update_.arrivals);
  auto declared = declared_.extract(tensor.number);
  if (declared.empty() && by == all_) return inputs_.report(tensor.number, all_, update_);
  inputs_.forget(tensor.number);
  // Where ranks have joined, the root has to know which ranks have submitted the tensor. A source
  // that marked it without a declaration did so for all its members, and nothing has changed.
  Variants variants;
  std::uint64_t declarers = 0;
  if (!declared.empty()) {
    variants = std::move(declared.mapped().variants);
    declarers = declared.mapped().by;
  }
  RankRanges unchanged;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if ((by & ~declarers & bit(i)) != 0) unchanged.add(sources_[i].members);
  }
  if (!unchanged.empty()) variants[std::nullopt].add(unchanged);
  update_.declared.push_back({.name = *tensor.name,
                              .number = tensor.number,
                              .again = false,
                              .variants = std::move(variants)});
}

void SubtreeAggregator::send_if_complete(const std::string& name, NewName& tensor) {
  if (!complete(tensor.marks) || tensor.redeclaring != 0) return;
  const auto own = (tensor.marks & bit(kOwn)) != 0 ? std::optional(tensor.own) : std::nullopt;
  arrivals_.complete(name, {.name = name, .own = own}, update_.arrivals);
  tensor.marks |= kSentUp;
  update_.declared.push_back({.name = name,
                              .number = kNoNumber,
                              .again = tensor.again,
                              .variants = std::move(tensor.variants)});
}

SubtreeUpdate SubtreeAggregator::take_update() {
  std::sort(update_.ready.begin(), update_.ready.end());
  return std::exchange(update_, {});
}

// -- Down ---------------------------------------------------------------------------------------

Status SubtreeAggregator::define(const Definition& definition) {
  const auto place = place_of_number(definition.id);
  if (place < tensors_.size() && tensors_[place].number == definition.id &&
      *tensors_[place].name == definition.name)
    return {};  // Repeated for hosts that have joined.
  const bool in_order = place < tensors_.size()
                            ? definition.id - tensors_[place].number == kMostTensors
                            : place == tensors_.size() && definition.id == place;
  if (!in_order || numbers_.contains(definition.name)) {
    return fail(Errc::protocol, "process set {}: tensor '{}' gets number {} out of order", set_,
                definition.name, definition.id);
  }
  auto found = new_names_.extract(definition.name);
  const bool known = !found.empty() && (found.mapped().marks & kSentUp) != 0;
  if (!known && absent_ != all_) {
    return fail(Errc::protocol, "process set {}: tensor '{}' was agreed on without this host", set_,
                definition.name);
  }
  if (place == tensors_.size()) {
    tensors_.emplace_back();
  } else {
    HORO_TRY_STATUS(evict(tensors_[place]));
  }
  auto& tensor = tensors_[place];
  tensor.number = definition.id;
  tensor.name = &numbers_.emplace(definition.name, definition.id).first->first;
  tensor.marks = kSentUp;
  if (!known || (found.mapped().marks & bit(kOwn)) == 0) return {};
  tensor.marks |= bit(kOwn);
  tensor.own = found.mapped().own;
  tensor.whole = found.mapped().whole;
  return {};
}

Status SubtreeAggregator::evict(Agreed& tensor) {
  // A source that has the tensor already declares it again by its name: a child when it gets this
  // definition, this host now.
  declared_.erase(tensor.number);
  inputs_.forget(tensor.number);
  auto name = numbers_.extract(*tensor.name);
  const auto own = tensor.own.index();
  if (own < agreed_.size() && agreed_[own] == tensor.number) agreed_[own] = kNoNumber;
  if ((tensor.marks & ~kSentUp) == 0) return {};
  auto& renewed = new_names_[name.key()];
  renewed.again = (tensor.marks & kSentUp) != 0;
  renewed.redeclaring = tensor.marks & ~(kSentUp | bit(kOwn));
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if ((renewed.redeclaring & bit(i)) != 0) redeclarations_.expect(i);
  return (tensor.marks & bit(kOwn)) != 0 ? declare_own(tensor.own) : Status();
}

Status SubtreeAggregator::accept(const LogEntry& entry) {
  if (entry.sequence != next_) {
    return fail(Errc::protocol, "process set {}: entry {} came where {} was expected", set_,
                entry.sequence, next_);
  }
  ++next_;
  for (const auto& definition : entry.definitions) HORO_TRY_STATUS(define(definition));
  HORO_TRY(auto queued, translate(entry));
  if (entry.kind == LogKind::join) {
    absent_ = 0;
    for (auto& source : sources_) source.joined = {};
  }
  if (!queue_) return {};
  queued.rows = entry.rows;
  queued.inputs = entry.inputs;
  queued.text = entry.text;
  queued.ranks = entry.ranks;
  queued.tuning = entry.tuning;
  queued.joined = entry.joined;
  return queue_->push(std::move(queued));
}

Result<QueuedEntry> SubtreeAggregator::translate(const LogEntry& entry) {
  QueuedEntry queued{.kind = entry.kind};
  std::unordered_map<std::uint32_t, const Definition*> definitions;
  for (const auto id : entry.ids) {
    const auto place = place_of_number(id);
    if (place >= tensors_.size() || tensors_[place].number != id ||
        ((tensors_[place].marks & kSentUp) == 0 && absent_ != all_)) {
      return fail(Errc::protocol,
                  "process set {}: entry {} has tensor {}, which is not ready on this host", set_,
                  entry.sequence, id);
    }
    auto& tensor = tensors_[place];
    const auto marks = std::exchange(tensor.marks, 0);
    const bool whole = std::exchange(tensor.whole, false);
    if (host_ == nullptr) continue;
    queued.ids.push_back(tensor.own);
    if ((marks & bit(kOwn)) != 0) {
      // A mismatch is no agreement.
      if (whole && runs(entry.kind)) agreed_[tensor.own.index()] = id;
      continue;
    }
    if (definitions.empty()) {
      for (const auto& definition : entry.definitions) definitions[definition.id] = &definition;
    }
    const auto found = definitions.find(id);
    if (found == definitions.end()) {
      return fail(Errc::protocol,
                  "process set {}: entry {} does not define tensor {} for hosts that joined", set_,
                  entry.sequence, id);
    }
    queued.foreign.push_back({.position = queued.ids.size() - 1,
                              .name = found->second->name,
                              .signature = found->second->signature});
  }
  return queued;
}

}  // namespace horo::runtime::tree
