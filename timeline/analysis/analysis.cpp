// SPDX-License-Identifier: Apache-2.0
#include "timeline/analysis/analysis.hpp"

#include <algorithm>
#include <bit>

namespace horo::timeline {

namespace {

/// Bytes that cross between n ranks, per byte of the operation.
double bus_factor(std::string_view kind, int ranks) {
  if (ranks < 2) return 0;
  const double share = static_cast<double>(ranks - 1) / ranks;
  if (kind == "ALLREDUCE" || kind == "ADASUM") return 2 * share;
  if (kind == "BROADCAST") return 1;
  return share;
}

}  // namespace

void Analysis::starts(std::int64_t ns) {
  if (selecting_ && selection_.limits_time()) return;  // Counting from another origin has begun.
  origin_ = begun_ ? std::min(origin_, ns) : ns;
  begun_ = true;
}

Interval Analysis::clip(Interval when) const {
  const auto seconds = [this](std::int64_t ns) { return static_cast<double>(ns - origin_) / 1e9; };
  const auto ns = [this](double at) { return origin_ + static_cast<std::int64_t>(at * 1e9); };
  if (seconds(when.from) < selection_.from) when.from = std::min(when.to, ns(selection_.from));
  if (seconds(when.to) > selection_.to) when.to = std::max(when.from, ns(selection_.to));
  return when;
}

bool Analysis::is_selected(Interval when) {
  if (!begun_) starts(when.from);
  selecting_ = true;
  const double begin = static_cast<double>(when.from - origin_) / 1e9;
  const double end = static_cast<double>(when.to - origin_) / 1e9;
  return begin <= selection_.to && end >= selection_.from;
}

std::optional<Interval> Analysis::cover(Interval when) {
  if (!is_selected(when)) return std::nullopt;
  when = clip(when);
  figures_.first_ns = covered_ ? std::min(figures_.first_ns, when.from) : when.from;
  figures_.last_ns = covered_ ? std::max(figures_.last_ns, when.to) : when.to;
  covered_ = true;
  return when;
}

void Analysis::count_arrivals(const ObservedOperation& operation) {
  const auto& arrivals = operation.arrivals;
  if (arrivals.size() < 2) return;
  ++figures_.with_arrivals;
  const auto by_time = [](const Arrival& a, const Arrival& b) { return a.ns < b.ns; };
  const auto last = std::max_element(arrivals.begin(), arrivals.end(), by_time);
  const auto first = std::min_element(arrivals.begin(), arrivals.end(), by_time);
  std::int64_t before = first->ns;
  for (const auto& arrival : arrivals) {
    if (&arrival != &*last) before = std::max(before, arrival.ns);
    auto& rank = figures_.ranks[arrival.rank];
    ++rank.arrivals;
    const auto behind = static_cast<double>(arrival.ns - first->ns);
    rank.late_ns += behind;
    figures_.late.add(arrival.rank, arrival.ns - origin_, behind);
  }
  count_skew(operation, first->ns, last->ns);
  auto& late = figures_.ranks[last->rank];
  ++late.last;
  late.last_by_ns += static_cast<double>(last->ns - before);
  lateness_cost_.late(last->rank, clip({before, last->ns}));
  occasions_.add(operation.name, {first->ns, last->ns}, last->rank, last->ns - before);
}

void Analysis::count_skew(const ObservedOperation& operation, std::int64_t first,
                          std::int64_t last) {
  constexpr std::size_t kMostNames = 100'000;
  if (top_ == 0 || (skews_.size() >= kMostNames && !skews_.contains(operation.name))) return;
  auto& skew = skews_[operation.name];
  const auto ns = static_cast<double>(last - first);
  ++skew.operations;
  skew.ns += ns;
  skew.most_ns = std::max(skew.most_ns, ns);
}

void Analysis::keep_most_skewed() {
  auto& kept = figures_.skews;
  for (auto& [name, skew] : skews_) {
    skew.name = name;
    kept.push_back(std::move(skew));
  }
  std::sort(kept.begin(), kept.end(), [](const SkewFigures& a, const SkewFigures& b) {
    return a.ns != b.ns ? a.ns > b.ns : a.name < b.name;
  });
  if (kept.size() > top_) kept.resize(top_);
}

void Analysis::stepped(Interval when) {
  constexpr std::size_t kMostShown = 1000;
  if (!cover(when)) return;
  auto& steps = figures_.steps;
  if (figures_.step.count() % step_stride_ == 0) steps.push_back(when);
  figures_.step.add(when.to - when.from);
  if (steps.size() < kMostShown) return;
  for (std::size_t i = 0; 2 * i < steps.size(); ++i) steps[i] = steps[2 * i];
  steps.resize((steps.size() + 1) / 2);
  step_stride_ *= 2;
}

void Analysis::clock(std::string_view host, std::int64_t moved_ns, std::int64_t error_ns) {
  figures_.clocks[std::string(host)] = {moved_ns, error_ns};
}

/// A trace may contain any texts, so further rows are left out.
void Analysis::count_path(const ObservedOperation& operation) {
  constexpr std::size_t kMostPaths = 16;
  if (operation.path.empty()) return;
  const std::pair row{operation.path, operation.path_reason};
  if (figures_.paths.size() < kMostPaths || figures_.paths.contains(row)) ++figures_.paths[row];
}

void Analysis::count_size(const ObservedOperation& operation) {
  if (operation.bytes == 0 || operation.ended <= operation.begun) return;
  constexpr std::uint64_t kPerClass = 4;  // Classes are powers of 4.
  std::uint64_t least = 1;
  while (operation.bytes / kPerClass >= least) least *= kPerClass;
  auto& size = figures_.sizes[least];
  size.least_bytes = least;
  ++size.operations;
  const auto bytes = static_cast<double>(operation.bytes);
  const auto bus_bytes = bytes * bus_factor(operation.kind, operation.ranks);
  const auto ns = static_cast<double>(operation.ended - operation.begun);
  size.bytes += bytes;
  size.bus_bytes += bus_bytes;
  size.ns += ns;
  size.best = std::max(size.best, bus_bytes / ns);
}

void Analysis::keep_if_slow(const ObservedOperation& operation) {
  const auto took = operation.ended - operation.submitted;
  auto& slowest = figures_.slowest;
  if (top_ == 0 || (slowest.size() == top_ && slowest.back().took_ns >= took)) return;
  int last_rank = -1;
  std::int64_t last = 0;
  for (const auto& arrival : operation.arrivals) {
    if (last_rank >= 0 && arrival.ns <= last) continue;
    last_rank = arrival.rank;
    last = arrival.ns;
  }
  SlowOperation slow{.at_ns = operation.submitted,
                     .took_ns = took,
                     .negotiated_ns = operation.agreed - operation.submitted,
                     .moved_ns = operation.ended - operation.begun,
                     .device_ns = operation.device_ns,
                     .bytes = operation.bytes,
                     .tensors = operation.tensors,
                     .name = operation.name,
                     .kind = operation.kind,
                     .last_rank = operation.arrivals.size() > 1 ? last_rank : -1};
  const auto place = std::find_if(slowest.begin(), slowest.end(),
                                  [&](const SlowOperation& other) { return other.took_ns < took; });
  slowest.insert(place, std::move(slow));
  if (slowest.size() > top_) slowest.pop_back();
}

void Analysis::operation(const ObservedOperation& operation) {
  if (!cover({operation.submitted, operation.ended})) return;
  ++figures_.operations;
  figures_.tensors += operation.tensors;
  figures_.bytes += static_cast<double>(operation.bytes);
  const auto moving = static_cast<double>(operation.ended - operation.begun);
  figures_.moving_ns += moving;
  figures_.moving.add(operation.ended - operation.begun);
  figures_.packing_ns += static_cast<double>(operation.packing_ns);
  if (operation.packing_ns > 0) figures_.packed_bytes += static_cast<double>(operation.bytes);
  if (operation.tensors > 1) ++figures_.fused;
  if (operation.bytes > 0 && operation.bytes < kSmall) {  // 0: the trace has no sizes.
    ++figures_.small;
    figures_.small_ns += moving;
  }
  if (!operation.mover.empty()) ++figures_.movers[operation.mover];
  count_path(operation);
  figures_.negotiation.add(operation.agreed - operation.submitted);
  negotiating_.add_first(clip({operation.submitted, operation.agreed}));
  negotiating_.add_second(clip({operation.begun, operation.ended}));
  figures_.queue.add(operation.begun - operation.agreed);
  if (operation.device_ns > 0) devices_.operation(clip({operation.agreed, operation.ended}));
  count_arrivals(operation);
  count_size(operation);
  keep_if_slow(operation);
}

void Analysis::worked(const DeviceWork& work) {
  const auto part = figures_.shows(work.rank) ? cover(work.when) : std::nullopt;
  if (part) devices_.worked({.rank = work.rank, .activity = work.activity, .when = *part});
}

void Analysis::no_device_times(int rank, std::string_view reason, std::int64_t ns) {
  if (figures_.shows(rank) && is_selected({ns, ns})) devices_.missing(reason);
}

void Analysis::waited(int rank, Interval when) {
  const auto part = cover(when);
  if (!part) return;
  figures_.knows_waits = true;
  lateness_cost_.waited(*part);  // Ranks that are not selected may wait for the selected one.
  if (figures_.shows(rank)) waits_[rank].add_second(*part);
}

void Analysis::communicated(int rank, Interval when) {
  const auto part = figures_.shows(rank) ? cover(when) : std::nullopt;
  if (!part) return;
  waits_[rank].add_first(*part);
  compute_[rank].add_first(*part);
}

void Analysis::computed(int rank, Interval when) {
  const auto part = figures_.shows(rank) ? cover(when) : std::nullopt;
  if (!part) return;
  figures_.knows_compute = true;
  compute_[rank].add_second(*part);
}

void Analysis::stalled(int rank, int lines, std::int64_t ns) {
  if (figures_.shows(rank) && is_selected({ns, ns}))
    figures_.stalls += static_cast<std::uint64_t>(lines);
}

void Analysis::mismatched(int rank, const std::string& name, std::int64_t ns) {
  constexpr std::size_t kMostNames = 1000;
  if (!figures_.shows(rank) || !is_selected({ns, ns})) return;
  auto& names = figures_.mismatches;
  if (names.size() < kMostNames || names.contains(name)) ++names[name];
}

void Analysis::lost(int /*rank*/, int culprit, std::int64_t ns) {
  if (is_selected({ns, ns})) ++figures_.culprits[culprit];
}

void Analysis::tuned(const TuningSwitch& change) {
  constexpr std::size_t kMostSwitches = 10'000;
  if (is_selected({change.ns, change.ns}) && figures_.switches.size() < kMostSwitches)
    figures_.switches.push_back(change);
}

/// The first rank that enters a generation gives its time.
void Analysis::entered(const GenerationMark& mark) {
  constexpr std::size_t kMostGenerations = 10'000;
  auto& known = figures_.generations;
  if (!is_selected({mark.ns, mark.ns})) return;
  if (known.size() >= kMostGenerations && !known.contains(mark.generation)) return;
  const auto [place, added] = known.try_emplace(mark.generation, mark);
  if (!added && mark.ns < place->second.ns) place->second = mark;
}

void Analysis::unfinished(const UnfinishedOperation& what) {
  const auto shown = [this](int rank) { return figures_.shows(rank); };
  const bool concerned = std::any_of(what.waiting.begin(), what.waiting.end(), shown) ||
                         std::any_of(what.missing.begin(), what.missing.end(), shown);
  if (concerned && is_selected(what.when)) figures_.unfinished.push_back(what);
}

void Analysis::dropped(int rank, std::uint64_t records) {
  if (records != 0) figures_.ranks[rank].dropped += records;
}

void Analysis::saw_rank(int rank, std::string_view host) {
  figures_.ranks[rank].host = host;
}

Figures Analysis::finish() {
  figures_.origin_ns = covered_ ? std::min(origin_, figures_.first_ns) : origin_;
  for (auto& slow : figures_.slowest) slow.at_ns -= figures_.origin_ns;
  const auto negotiating = negotiating_.sums();
  figures_.held_up_ns = negotiating.first_ns - negotiating.both_ns;
  figures_.busy_ns = negotiating.second_ns;
  keep_most_skewed();
  figures_.device = devices_.finish();
  for (const auto& [rank, sums] : lateness_cost_.sums()) {
    figures_.ranks[rank].caused_wait_ns = figures_.knows_waits ? sums.waited_ns : sums.late_ns;
  }
  const auto occasions = occasions_.counts();
  figures_.occasions = occasions.all;
  for (const auto& [rank, last] : occasions.last) figures_.ranks[rank].occasions_last = last;
  for (auto& [rank, overlap] : waits_) {
    const auto sums = overlap.sums();
    auto& figures = figures_.ranks[rank];
    figures.communicated_ns = sums.first_ns;
    figures.waited_ns = sums.second_ns;
    figures.exposed_ns = sums.both_ns;
  }
  if (figures_.knows_compute) {
    for (auto& [rank, overlap] : compute_) {
      const auto sums = overlap.sums();
      auto& figures = figures_.ranks[rank];
      figures.communicated_ns = sums.first_ns;
      figures.computed_ns = sums.second_ns;
      figures.exposed_ns = sums.first_ns - sums.both_ns;
    }
  }
  return std::move(figures_);
}

}  // namespace horo::timeline
