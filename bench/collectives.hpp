// SPDX-License-Identifier: Apache-2.0
// The interface between a measured program and bench/collectives: one float32 collective at a time,
// out of place, with buffers that are reused.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.hpp"
#include "bench/harness.hpp"

namespace horo::bench {

/// adasum is an allreduce in place, and `allreduce` is included to compare with it.
enum class CollectiveKind { allgather, alltoall, reducescatter, broadcast, allreduce, adasum };

/// `elements` counts the larger side: the output of an allgather, the input of the others.
struct Collective {
  CollectiveKind kind = CollectiveKind::allgather;
  std::string name;
  std::size_t elements = 0;  ///< A multiple of the number of ranks.

  std::size_t input(int ranks) const;
  std::size_t output(int ranks) const;
};

/// Thread: owner. Every call but rank(), ranks(), input() and output() is collective.
class CollectiveContender {
 public:
  virtual ~CollectiveContender() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  /// Allocates the buffers of a case and frees the earlier ones. Fails: unsupported.
  virtual Status prepare(const Collective& collective) = 0;

  virtual std::span<float> input() = 0;

  /// The result of the last step; its address may change with each step.
  virtual std::span<const float> output() = 0;

  /// Runs the case once and returns when this rank has its result.
  virtual Status step() = 0;

  /// Gives rank 0's number to every rank.
  virtual Result<double> agree(double number) = 0;
};

/// Runs all cases of `options`, lines "<kind> <elements>". Blocks: until they are done.
/// Fails: as the contender; protocol when a result is wrong.
Status run_collectives(CollectiveContender& contender, const Options& options);

}  // namespace horo::bench
