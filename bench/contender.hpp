// SPDX-License-Identifier: Apache-2.0
// The interface between a measured program and the harness: a contender sums named sets of float32
// tensors over all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace horo::bench {

/// One case: the tensors that a step sums. A single tensor is a synchronous call; several tensors
/// are submitted one by one without waiting, and then waited for.
struct Workload {
  std::string name;
  std::vector<std::size_t> counts;  ///< float32 elements per tensor, in order of submission.

  std::size_t bytes() const;
};

/// Thread: owner. All calls except rank(), ranks() and entries() are collective: all ranks make
/// them in the same order.
class Contender {
 public:
  virtual ~Contender() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  /// Allocates the tensors of `workload` and frees the earlier ones. Contents are undefined.
  virtual Status prepare(const Workload& workload) = 0;

  /// Memory of tensor `index`; valid until the next prepare().
  virtual std::span<float> tensor(std::size_t index) = 0;

  /// Sums every tensor over all ranks, in place, and returns when this rank has all results.
  virtual Status step() = 0;

  /// Number of log entries that this rank has executed; nullopt if the contender has no log.
  virtual std::optional<std::uint64_t> entries() const = 0;
};

}  // namespace horo::bench
