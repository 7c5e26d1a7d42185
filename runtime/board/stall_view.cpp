// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/stall_view.hpp"

#include <algorithm>
#include <compare>

#include "runtime/host/read_once.hpp"

namespace horo::runtime {

namespace {

/// How far a member is.
struct Done {
  std::uint64_t entries;
  std::uint64_t steps;
  auto operator<=>(const Done&) const = default;
};

}  // namespace

/// Notes the first mark and the members without one; false when no member has marked the tensor.
bool StallView::read_marks(Unfinished& found) const {
  // One total order with the marker's look at `due`: see StallWatch.
  if (!marks_.any(found.id)) return false;
  std::vector<int> unmarked;
  for (int m = 0; m < region_.local_size(); ++m) {
    if (!marks_.has_marked(found.id, m)) {
      unmarked.push_back(m);
      continue;
    }
    const auto at = region_.rank_tensor(found.id, m).marked_at.load(std::memory_order_relaxed);
    found.since = found.since == 0 ? at : std::min(found.since, at);
    found.group = directory_.groups().of(found.id, m);
    found.is_join = directory_.signatures().declared(found.id, m).kind == Kind::join;
  }
  for (const int m : unmarked) {
    if (found.is_join || !marks_.has_joined(m)) found.missing.push_back(m);
  }
  return true;
}

/// Finds what the tensor waits for; false when that is nothing.
bool StallView::find_wait(Unfinished& found) const {
  if (found.missing.empty() && directory_.groups().is_waiting(found.group)) {
    found.wait = Unfinished::Wait::group;
    return true;
  }
  found.group = {};
  if (!found.missing.empty()) return true;
  if (completed_by_ == CompletedBy::other_hosts) {
    found.wait = Unfinished::Wait::other_hosts;
    return true;
  }
  const auto holder = region_.body().combiner.load(std::memory_order_relaxed);
  if (holder == 0 || holder > region_.params().local_size) return false;
  found.wait = Unfinished::Wait::cutter;
  found.missing.push_back(static_cast<int>(holder) - 1);
  return true;
}

std::optional<Unfinished> StallView::inspect(TensorId id) const {
  const auto generation = marks_.generation(id);
  Unfinished found{.id = id};
  if (!read_marks(found) || !find_wait(found)) return std::nullopt;
  // The tensor is in an entry meanwhile: what was read may be of two generations. The fence keeps
  // the reads above from being done behind the one below.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (marks_.generation(id) != generation) return std::nullopt;
  return found;
}

void StallView::add_missing_of_group(Unfinished& waiting,
                                     const std::vector<Unfinished>& all) const {
  for (const auto& other : all) {
    if (other.wait == Unfinished::Wait::group || other.wait == Unfinished::Wait::cutter) continue;
    for (int m = 0; m < region_.local_size(); ++m) {
      if (!marks_.has_marked(other.id, m) || directory_.groups().of(other.id, m) != waiting.group)
        continue;
      waiting.missing.insert(waiting.missing.end(), other.missing.begin(), other.missing.end());
      break;
    }
  }
  std::sort(waiting.missing.begin(), waiting.missing.end());
  waiting.missing.erase(std::unique(waiting.missing.begin(), waiting.missing.end()),
                        waiting.missing.end());
}

std::vector<Unfinished> StallView::unfinished() const {
  std::vector<Unfinished> all;
  const auto count = region_.tensor_count();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (auto one = inspect(TensorId{i})) all.push_back(std::move(*one));
  }
  for (auto& one : all) {
    if (one.wait == Unfinished::Wait::group) add_missing_of_group(one, all);
  }
  return all;
}

std::vector<std::string> StallView::names_of_entry(std::uint64_t number) const {
  constexpr std::uint64_t kMostNamed = 64;
  const auto entry = copy_once(region_.tables().log[number % kLogSlots]);
  const auto room = region_.layout().word_count;
  const auto first = entry.first_word;
  const auto count = std::min<std::uint64_t>(entry.count, kMostNamed);
  std::vector<std::string> names;
  if (first > room || count > room - first) return names;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto id = read_once(region_.tables().words[first + i]);
    if (id < region_.tensor_count())
      names.emplace_back(region_.tensor_name(TensorId{static_cast<std::uint32_t>(id)}));
  }
  return names;
}

UnderWay StallView::under_way() const {
  const auto tail = region_.body().tail.load(std::memory_order_acquire);
  UnderWay found{.progress = tail};
  auto least = Done{tail, ~std::uint64_t{0}};
  for (int m = 0; m < region_.local_size(); ++m) {
    const auto& area = region_.area(m);
    const Done done{area.cursor.load(std::memory_order_acquire),
                    area.copied_in.load(std::memory_order_relaxed) +
                        area.reduced.load(std::memory_order_relaxed) +
                        area.copied_out.load(std::memory_order_relaxed) +
                        area.direct_done.load(std::memory_order_relaxed)};
    found.progress += done.entries + done.steps;
    if (done.entries >= tail ||
        region_.rank_slot(m).state.load(std::memory_order_relaxed) == RankState::detached)
      continue;
    found.behind.push_back(m);
    if (done < least) {
      least = done;
      found.last.clear();
    }
    if (done == least) found.last.push_back(m);
  }
  if (found.behind.empty()) return found;
  found.entries = tail - least.entries;
  found.names = names_of_entry(least.entries);
  return found;
}

}  // namespace horo::runtime
