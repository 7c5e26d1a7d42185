// SPDX-License-Identifier: Apache-2.0
// Which backend of a process set moves a bucket, by the bucket's memory, kind and size. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backends/hierarchical/choose.hpp"
#include "runtime/backends/hierarchical/hierarchy.hpp"
#include "runtime/bucket/backend.hpp"
#include "timeline/record/record.hpp"

namespace horo::runtime {

inline MemoryKind memory_of(const Bucket& bucket) {
  return bucket.like.memory;
}

/// How a bucket is moved.
enum class BucketPath : std::uint8_t {
  whole,     ///< By the set's one backend, among all members at once.
  by_hosts,  ///< In a step inside each host, one between the hosts, and one inside again.
  refused,   ///< No backend of the set can move it.
};

struct PathChoice {
  BucketPath path = BucketPath::refused;
  timeline::PathReason reason = timeline::PathReason::none;
};

/// Whether all-reduces may go by hosts.
struct ByHostsRule {
  timeline::PathReason why_not = timeline::PathReason::none;  ///< none: they may.
  std::uint64_t least = std::uint64_t{64}
                        << 10U;  ///< Bytes from which the further steps cost less.
};

/// Built once per set; a lookup is an index and a comparison. Thread: immutable.
class BackendTable {
 public:
  /// For a set whose members are all on one host: shared memory.
  static BackendTable of_one_host();

  /// For a set whose members are on several hosts. `choice` moves whole buckets.
  static BackendTable of_hosts(BackendChoice choice, const Hierarchy& hierarchy,
                               const ByHostsRule& rule);

  /// `bytes`: of all tensors of the bucket. Allocates nothing.
  PathChoice choose(MemoryKind memory, const Signature& like, std::uint64_t bytes) const {
    const auto& cell =
        cells_[static_cast<std::size_t>(memory)][static_cast<std::size_t>(like.kind)];
    if (bytes < cell.least) return {BucketPath::whole, timeline::PathReason::too_small};
    if (cell.path == BucketPath::by_hosts && !can_run_in_parts(like))
      return {BucketPath::whole, timeline::PathReason::needs_all_inputs};
    return {cell.path, cell.reason};
  }

  /// The same for a bucket that is complete.
  PathChoice choose(const Bucket& bucket) const;

  /// Some buckets go by hosts.
  bool uses_hosts() const { return uses_hosts_; }

  /// The backend that moves whole buckets: "shm" or a module's name.
  const std::string& backend() const { return choice_.name; }

  /// The backends that the set does not use, each with the reason.
  const std::vector<BackendCandidate>& rejected() const { return choice_.rejected; }

  /// "gloo, all-reduce by hosts; not used: shm (the ranks are on several hosts), ..."
  std::string describe() const;

 private:
  /// The path of the buckets of one kind in one kind of memory.
  struct Cell {
    std::uint64_t least = 0;  ///< Smaller buckets are moved whole.
    BucketPath path = BucketPath::refused;
    timeline::PathReason reason = timeline::PathReason::none;
  };

  explicit BackendTable(BackendChoice choice);

  static constexpr std::size_t kKinds = static_cast<std::size_t>(Kind::join) + 1;

  BackendChoice choice_;
  bool uses_hosts_ = false;
  std::array<std::array<Cell, kKinds>, kMemoryKinds> cells_;
};

}  // namespace horo::runtime
