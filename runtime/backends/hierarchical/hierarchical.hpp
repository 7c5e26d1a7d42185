// SPDX-License-Identifier: Apache-2.0
// All-reduce over hosts with several ranks each: reduce-scatter inside the host, all local ranks
// all-reduce their slice across the hosts at the same time, all-gather inside. A host's wire
// carries 2 (h - 1) / h of the bytes in each direction for h hosts, however many ranks it has.
//
// A bucket is cut into stretches, and each stretch takes the three steps. The steps are three
// backends, so that each of them sees its own buckets in the same order on all its ranks, while a
// stretch may be in any step.
#pragma once

#include <deque>
#include <memory>

#include "runtime/backends/flat/staging.hpp"
#include "runtime/backends/hierarchical/bucket_queue.hpp"
#include "runtime/backends/hierarchical/hierarchy.hpp"
#include "runtime/bucket/backend.hpp"

namespace horo::runtime {

/// The backends of the three steps.
struct HierarchicalParts {
  std::unique_ptr<Backend> scatter;  ///< Among this host's ranks, with rings of its own.
  std::unique_ptr<Backend> across;   ///< Among ranks with this local rank; null: it owns no slice.
  std::unique_ptr<Backend> gather;   ///< Among this host's ranks, with rings of its own.
};

inline constexpr std::uint64_t kStretchBytes = std::uint64_t{4} << 20U;

/// Takes only buckets for which can_run_in_parts(). Thread: the holder of the progress token.
class HierarchicalBackend final : public Backend {
 public:
  HierarchicalBackend(HierarchicalParts parts, const Hierarchy& hierarchy,
                      std::uint64_t stretch_bytes = kStretchBytes);

  BackendCaps caps() const override;
  Status start(Bucket bucket) override;
  bool progress() override;

  std::uint64_t completed() const override { return active_.completed(); }

  std::uint64_t started() const override { return active_.started(); }

  CopyTimes copied() const override;
  Status health() const override;
  void abort() override;

 private:
  static constexpr std::size_t kDepth = 4;  ///< Stretches that are between their steps.

  struct Active {
    Bucket bucket;
    std::vector<std::vector<Cut>> stretches;
    std::size_t begun = 0;
    std::size_t done = 0;
  };

  struct Stretch {
    Active* bucket = nullptr;  ///< The bucket that it is a part of.
    Leg leg;
    Staging slice;
  };

  bool begin_stretches();
  /// False when all stretches of the bucket have begun, or kDepth are on their way.
  Result<bool> begin_stretch(Active& active);
  bool advance();
  void retire();
  bool move_stretches();
  void fail_with(Error error);

  const HierarchicalParts parts_;
  const Hierarchy hierarchy_;
  const std::uint64_t stretch_bytes_;
  BucketQueue<Active> active_;
  std::deque<std::unique_ptr<Stretch>> scattering_;
  std::deque<std::unique_ptr<Stretch>> crossing_;
  std::deque<std::unique_ptr<Stretch>> gathering_;
  std::vector<std::unique_ptr<Stretch>> idle_;
  std::uint64_t scattered_ = 0;
  std::uint64_t crossed_ = 0;
  std::uint64_t gathered_ = 0;
  Status health_;
};

}  // namespace horo::runtime
