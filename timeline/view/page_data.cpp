// SPDX-License-Identifier: Apache-2.0
#include "timeline/view/page_data.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.hpp"

namespace horo::timeline {

namespace {

/// Drops every second item.
template <typename T>
void thin(std::vector<T>& rows) {
  for (std::size_t i = 0; 2 * i < rows.size(); ++i) rows[i] = rows[2 * i];
  rows.resize((rows.size() + 1) / 2);
}

template <typename T>
void keep(std::vector<T>& rows, std::size_t most, std::uint64_t& stride, std::uint64_t& seen,
          const T& row) {
  if (seen++ % stride != 0) return;
  rows.push_back(row);
  if (rows.size() <= most) return;
  thin(rows);
  stride *= 2;
}

/// Tenths of microseconds, rounded.
std::int64_t tenths(std::int64_t ns) {
  return (ns + (ns < 0 ? -50 : 50)) / 100;
}

/// Escapes '<', so that a name cannot end the script element that contains it.
std::string quote(std::string_view text) {
  auto quoted = json_quote(text);
  for (std::size_t at = 0; (at = quoted.find('<', at)) != std::string::npos;)
    quoted.replace(at, 1, "\\u003c");
  return quoted;
}

}  // namespace

std::uint32_t PageData::number_of(const std::string& text) {
  const auto [found, fresh] = numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (fresh) texts_.push_back(text);
  return found->second;
}

int PageData::bucket_of(const std::vector<std::string>& members) {
  if (members.size() < 2 || members_ + members.size() > kMostMembers) return -1;
  std::vector<std::uint32_t> names;
  names.reserve(members.size());
  for (const auto& member : members) names.push_back(number_of(member));
  const auto [found, fresh] =
      buckets_.try_emplace(std::move(names), static_cast<int>(buckets_.size()));
  if (fresh) members_ += members.size();
  return found->second;
}

void PageData::operation(const ObservedOperation& operation) {
  const auto& arrivals = operation.arrivals;
  const bool wanted = rank_ < 0 || arrivals.empty() ||
                      std::any_of(arrivals.begin(), arrivals.end(),
                                  [this](const Arrival& arrival) { return arrival.rank == rank_; });
  if (wanted) keep_bar(operation);
  next_.operation(operation);
}

void PageData::keep_bar(const ObservedOperation& operation) {
  Bar bar{.submitted = operation.submitted,
          .agreed = operation.agreed,
          .begun = operation.begun,
          .ended = operation.ended,
          .bytes = operation.bytes,
          .name = number_of(operation.name),
          .kind = number_of(operation.kind),
          .tensors = operation.tensors,
          .device = operation.device_ns,
          .bucket = bucket_of(operation.members)};
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const auto& arrival : operation.arrivals) {
    if (operation.arrivals.size() < 2 || arrival.ns <= last) continue;
    last = arrival.ns;
    bar.last = arrival.rank;
  }
  keep(bars_, kMostOperations, bar_stride_, bars_seen_, bar);
}

void PageData::waited(int rank, Interval when) {
  if (rank_ < 0 || rank == rank_) keep(waits_, kMostWaits, wait_stride_, waits_seen_, {rank, when});
  next_.waited(rank, when);
}

void PageData::worked(const DeviceWork& work) {
  if (rank_ < 0 || work.rank == rank_) {
    keep(works_, kMostWorks, work_stride_, works_seen_,
         Work{.rank = work.rank, .activity = number_of(work.activity), .when = work.when});
  }
  next_.worked(work);
}

std::string PageData::operations_json(std::int64_t origin) {
  std::stable_sort(bars_.begin(), bars_.end(),
                   [](const Bar& a, const Bar& b) { return a.submitted < b.submitted; });
  std::string text;
  std::int64_t before = 0;
  for (const auto& b : bars_) {
    const auto at = tenths(b.submitted - origin);
    fmt::format_to(std::back_inserter(text), "{}[{},{},{},{},{},{},{},{},{},{},{}]",
                   text.empty() ? "" : ",", at - before, tenths(b.agreed - b.submitted),
                   tenths(b.begun - b.submitted), tenths(b.ended - b.submitted), b.name, b.kind,
                   b.bytes, b.tensors, b.last, b.bucket, tenths(b.device));
    before = at;
  }
  return text;
}

std::string PageData::waits_json(std::int64_t origin) {
  std::stable_sort(waits_.begin(), waits_.end(), [](const Wait& a, const Wait& b) {
    return std::tie(a.rank, a.when.from) < std::tie(b.rank, b.when.from);
  });
  std::string text;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < waits_.size(); ++i) {
    const auto& [rank, when] = waits_[i];
    const bool first = i == 0 || waits_[i - 1].rank != rank;
    if (first) {
      fmt::format_to(std::back_inserter(text), "{}[{},[", i == 0 ? "" : "]],", rank);
      before = 0;
    }
    const auto at = tenths(when.from - origin);
    fmt::format_to(std::back_inserter(text), "{}{},{}", first ? "" : ",", at - before,
                   tenths(when.to - when.from));
    before = at;
  }
  return text.empty() ? text : text + "]]";
}

/// For each rank its number, and a list of three numbers for each phase: activity, time, duration.
std::string PageData::works_json(std::int64_t origin) {
  std::stable_sort(works_.begin(), works_.end(), [](const Work& a, const Work& b) {
    return std::tie(a.rank, a.when.from) < std::tie(b.rank, b.when.from);
  });
  std::string text;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < works_.size(); ++i) {
    const auto& work = works_[i];
    const bool first = i == 0 || works_[i - 1].rank != work.rank;
    if (first) {
      fmt::format_to(std::back_inserter(text), "{}[{},[", i == 0 ? "" : "]],", work.rank);
      before = 0;
    }
    const auto at = tenths(work.when.from - origin);
    fmt::format_to(std::back_inserter(text), "{}{},{},{}", first ? "" : ",", work.activity,
                   at - before, tenths(work.when.to - work.when.from));
    before = at;
  }
  return text.empty() ? text : text + "]]";
}

std::string PageData::json(std::int64_t origin) {
  std::string text = "{\"texts\":[";
  for (std::size_t i = 0; i < texts_.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ",", quote(texts_[i]));
  text += "],\"operations\":[" + operations_json(origin) + "],\"waits\":[" + waits_json(origin) +
          "],\"devices\":[" + works_json(origin);
  std::vector<const std::vector<std::uint32_t>*> buckets(buckets_.size());
  for (const auto& [names, number] : buckets_) buckets[static_cast<std::size_t>(number)] = &names;
  text += R"(],"buckets":[)";
  for (std::size_t i = 0; i < buckets.size(); ++i)
    text += fmt::format("{}[{}]", i == 0 ? "" : ",", fmt::join(*buckets[i], ","));
  return text + fmt::format(R"(],"operations_seen":{},"waits_seen":{}}})", bars_seen_, waits_seen_);
}

}  // namespace horo::timeline
