// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/lanes.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.hpp"

namespace horo::apps {

namespace {

/// Keeps the first of every two.
template <typename T>
void thin(std::vector<T>& rows) {
  for (std::size_t i = 0; 2 * i < rows.size(); ++i) rows[i] = rows[2 * i];
  rows.resize((rows.size() + 1) / 2);
}

template <typename T>
void keep(std::vector<T>& rows, std::uint64_t& stride, std::uint64_t& seen, const T& row) {
  if (seen++ % stride != 0) return;
  rows.push_back(row);
  if (rows.size() < Lanes::kMost) return;
  thin(rows);
  stride *= 2;
}

double us(std::int64_t ns) {
  return static_cast<double>(ns) / 1000;
}

/// A name may not end the script that it stands in.
std::string quote(std::string_view text) {
  auto quoted = json_quote(text);
  for (std::size_t at = 0; (at = quoted.find('<', at)) != std::string::npos;)
    quoted.replace(at, 1, "\\u003c");
  return quoted;
}

}  // namespace

std::uint32_t Lanes::number_of(const std::string& text) {
  const auto [found, fresh] = numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (fresh) texts_.push_back(text);
  return found->second;
}

int Lanes::bucket_of(const std::vector<std::string>& members) {
  if (members.size() < 2 || members_ + members.size() > kMostMembers) return -1;
  std::vector<std::uint32_t> names;
  names.reserve(members.size());
  for (const auto& member : members) names.push_back(number_of(member));
  const auto [found, fresh] =
      buckets_.try_emplace(std::move(names), static_cast<int>(buckets_.size()));
  if (fresh) members_ += members.size();
  return found->second;
}

void Lanes::operation(const Operation& operation) {
  const auto& arrivals = operation.arrivals;
  const bool wanted = rank_ < 0 || arrivals.empty() ||
                      std::any_of(arrivals.begin(), arrivals.end(),
                                  [this](const Arrival& arrival) { return arrival.rank == rank_; });
  if (wanted) keep_bar(operation);
  next_.operation(operation);
}

void Lanes::keep_bar(const Operation& operation) {
  Bar bar{.submitted = operation.submitted,
          .agreed = operation.agreed,
          .begun = operation.begun,
          .ended = operation.ended,
          .bytes = operation.bytes,
          .name = number_of(operation.name),
          .kind = number_of(operation.kind),
          .tensors = operation.tensors,
          .bucket = bucket_of(operation.members)};
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const auto& arrival : operation.arrivals) {
    if (operation.arrivals.size() < 2 || arrival.ns <= last) continue;
    last = arrival.ns;
    bar.last = arrival.rank;
  }
  keep(bars_, bar_stride_, bars_seen_, bar);
}

void Lanes::waited(int rank, Interval when) {
  if (rank_ < 0 || rank == rank_) keep(waits_, wait_stride_, waits_seen_, {rank, when});
  next_.waited(rank, when);
}

std::string Lanes::json(std::int64_t origin) const {
  std::string text = "{\"texts\":[";
  for (std::size_t i = 0; i < texts_.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ",", quote(texts_[i]));
  text += "],\"operations\":[";
  for (std::size_t i = 0; i < bars_.size(); ++i) {
    const auto& b = bars_[i];
    text += fmt::format("{}[{:.1f},{:.1f},{:.1f},{:.1f},{},{},{},{},{},{}]", i == 0 ? "" : ",",
                        us(b.submitted - origin), us(b.agreed - b.submitted),
                        us(b.begun - b.submitted), us(b.ended - b.submitted), b.name, b.kind,
                        b.bytes, b.tensors, b.last, b.bucket);
  }
  text += "],\"waits\":[";
  for (std::size_t i = 0; i < waits_.size(); ++i) {
    const auto& w = waits_[i];
    text += fmt::format("{}[{},{:.1f},{:.1f}]", i == 0 ? "" : ",", w.rank, us(w.when.from - origin),
                        us(w.when.to - w.when.from));
  }
  std::vector<const std::vector<std::uint32_t>*> buckets(buckets_.size());
  for (const auto& [names, number] : buckets_) buckets[static_cast<std::size_t>(number)] = &names;
  text += R"(],"buckets":[)";
  for (std::size_t i = 0; i < buckets.size(); ++i)
    text += fmt::format("{}[{}]", i == 0 ? "" : ",", fmt::join(*buckets[i], ","));
  return text + fmt::format(R"(],"operations_seen":{},"waits_seen":{}}})", bars_seen_, waits_seen_);
}

}  // namespace horo::apps
