// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/hierarchical/backend_table.hpp"

#include <utility>

namespace horo::runtime {

namespace {

using timeline::PathReason;

/// Why no bucket of the set goes by hosts; none: all-reduces do.
PathReason why_not_by_hosts(const Hierarchy& hierarchy, const ByHostsRule& rule) {
  if (rule.why_not != PathReason::none) return rule.why_not;
  if (hierarchy.hosts == 1) return PathReason::one_host;
  if (hierarchy.owners == 1) return PathReason::one_rank_on_a_host;
  return PathReason::none;
}

}  // namespace

BackendTable::BackendTable(BackendChoice choice) : choice_(std::move(choice)) {
  for (auto& cell : cells_[static_cast<std::size_t>(MemoryKind::host)])
    cell = {.least = 0, .path = BucketPath::whole, .reason = PathReason::no_allreduce};
  for (auto& cell : cells_[static_cast<std::size_t>(MemoryKind::device)])
    cell = {.least = 0, .path = BucketPath::refused, .reason = PathReason::device_memory};
  choice_.rejected.push_back({"device memory", std::string(text(PathReason::device_memory))});
}

BackendTable BackendTable::of_one_host() {
  constexpr const char* kSharedMemory = "the ranks of one host share memory";
  return BackendTable({.name = "shm",
                       .rejected = {{"tcp", kSharedMemory},
                                    {"gloo", kSharedMemory},
                                    {"mpi", kSharedMemory},
                                    {"hierarchical", "one host"}}});
}

BackendTable BackendTable::of_hosts(BackendChoice choice, const Hierarchy& hierarchy,
                                    const ByHostsRule& rule) {
  BackendTable table(std::move(choice));
  auto& cell = table.cells_[static_cast<std::size_t>(MemoryKind::host)]
                           [static_cast<std::size_t>(Kind::allreduce)];
  cell.reason = why_not_by_hosts(hierarchy, rule);
  if (cell.reason == PathReason::none) {
    cell = {.least = rule.least, .path = BucketPath::by_hosts, .reason = PathReason::by_hosts};
    table.uses_hosts_ = true;
  } else {
    table.choice_.rejected.push_back({"hierarchical", std::string(text(cell.reason))});
  }
  return table;
}

PathChoice BackendTable::choose(const Bucket& bucket) const {
  std::uint64_t bytes = 0;
  for (const auto& part : bucket.parts) bytes += part.elements * size_of(bucket.like.dtype);
  return choose(memory_of(bucket), bucket.like, bytes);
}

std::string BackendTable::describe() const {
  auto text = choice_.name;
  if (uses_hosts_) text += ", all-reduce by hosts";
  const char* before = "; not used: ";
  for (const auto& one : choice_.rejected)
    text += fmt::format("{}{} ({})", std::exchange(before, ", "), one.name, one.why_not);
  return text;
}

}  // namespace horo::runtime
