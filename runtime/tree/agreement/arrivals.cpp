// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/agreement/arrivals.hpp"

#include <algorithm>

namespace horo::runtime::tree {

namespace {

/// An arrival is at most this long ago, in microseconds.
constexpr std::uint64_t kMostAgo = std::uint64_t{3600} * 1'000'000;

}  // namespace

void ArrivalNotes::note(Of of) {
  of_ = of;
  if (of == Of::none) by_name_.clear();
}

void ArrivalNotes::take(std::size_t source, const std::vector<LastArrival>& tensors, TimePoint now,
                        const std::function<const std::string*(std::uint32_t)>& name_of) {
  if (of_ == Of::none) return;  // The child has not heard of that yet.
  for (const auto& tensor : tensors) {
    const auto* const name = tensor.name.empty() ? name_of(tensor.number) : &tensor.name;
    if (name == nullptr) continue;
    const auto ago = std::chrono::microseconds(std::min(tensor.us_ago, kMostAgo));
    take(source, *name, {.rank = tensor.rank, .at = now - ago});
  }
}

void ArrivalNotes::take(std::size_t source, const std::string& name, const KnownArrival& arrival) {
  if (by_name_.size() >= kMostTensors && !by_name_.contains(name)) return;
  auto& told = by_name_[name];
  const auto known = std::find_if(told.begin(), told.end(),
                                  [source](const auto& one) { return one.first == source; });
  if (known == told.end()) {
    told.emplace_back(source, arrival);
  } else {
    known->second = arrival;
  }
}

void ArrivalNotes::complete(const std::string& name, ArrivalsOf done,
                            std::vector<ArrivalsOf>& out) {
  if (by_name_.empty()) return;
  const auto found = by_name_.extract(name);
  if (found.empty()) return;
  for (const auto& [source, arrival] : found.mapped()) done.arrivals.push_back(arrival);
  out.push_back(std::move(done));
}

}  // namespace horo::runtime::tree
