// SPDX-License-Identifier: Apache-2.0
// All-reduce over hosts with several ranks each: reduce-scatter inside the host, all local ranks
// all-reduce their slice across the hosts at the same time, all-gather inside. A host's wire
// carries 2 (h - 1) / h of the bytes in each direction for h hosts, however many ranks it has.
//
// Buckets go in stretches, each through the three steps. The steps are three backends, so that
// each sees its own buckets in the same order on all its ranks, while a stretch may be in any step.
// What is not an all-reduce goes to a fourth, flat one.
#pragma once

#include <deque>
#include <memory>

#include "runtime/backends/backend.hpp"
#include "runtime/backends/flat/staging.hpp"
#include "runtime/backends/hierarchy.hpp"

namespace horo::runtime {

/// `scatter` and `gather` are of this host's ranks, each with rings of its own; `across` of this
/// local rank's peers, null where it owns no slice; `flat` of all ranks.
struct HierarchicalParts {
  std::unique_ptr<Backend> scatter;
  std::unique_ptr<Backend> across;
  std::unique_ptr<Backend> gather;
  std::unique_ptr<Backend> flat;
};

struct HierarchicalOptions {
  std::uint64_t stretch = std::uint64_t{4} << 20U;  ///< Bytes.
  std::uint64_t least = std::uint64_t{64} << 10U;   ///< Smaller buckets go flat.
};

/// Thread: the holder of the progress token.
class HierarchicalBackend final : public Backend {
 public:
  HierarchicalBackend(HierarchicalParts parts, const Hierarchy& hierarchy,
                      const HierarchicalOptions& options = {});

  BackendCaps caps() const override;
  Status start(Bucket bucket) override;
  bool progress() override;

  std::uint64_t completed() const override { return completed_; }

  std::uint64_t started() const override { return started_; }

  CopyTimes copied() const override;
  Status health() const override;
  void abort() override;

 private:
  static constexpr std::size_t kDepth = 4;  ///< Stretches on their way.

  struct Active {
    Bucket bucket;
    std::vector<std::vector<Cut>> stretches;
    std::size_t begun = 0;
    std::size_t done = 0;
    std::uint64_t flat_ticket =
        0;  ///< Done when the flat backend has completed so many; 0: not flat.
  };

  /// A stretch between its steps.
  struct Stretch {
    Active* of = nullptr;
    Leg leg;
    Staging slice;
  };

  bool begin_stretches();
  Result<bool> begin_stretch(Active& active);
  bool advance();
  bool retire();
  void fail_with(Error error);

  const HierarchicalParts parts_;
  const Hierarchy hierarchy_;
  const HierarchicalOptions options_;
  std::deque<Active> active_;
  std::deque<std::unique_ptr<Stretch>> scattering_;
  std::deque<std::unique_ptr<Stretch>> crossing_;
  std::deque<std::unique_ptr<Stretch>> gathering_;
  std::vector<std::unique_ptr<Stretch>> idle_;
  std::uint64_t scattered_ = 0;
  std::uint64_t crossed_ = 0;
  std::uint64_t gathered_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t completed_ = 0;
  Status health_;
};

}  // namespace horo::runtime
