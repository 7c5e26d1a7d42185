// SPDX-License-Identifier: Apache-2.0
// The state of one rank in an Adasum of one bucket.
//
// Its steps share the counters and rings of staged buckets. Each level of the tree is a pass over
// the data, in which every rank computes the products of its slices, and an exchange of the
// products through the result rings. A last pass adds up. All ranks add the products in rank order,
// so all have the same weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/bucket/adasum.hpp"
#include "runtime/bucket/backend.hpp"

namespace horo::runtime {

/// Owns the products and weights of one Adasum. Thread: the holder of the progress token.
class AdasumRun {
 public:
  /// A pass takes `data_steps` steps. A step of an exchange moves at most `room` bytes per rank.
  AdasumRun(const Signature& like, std::size_t parts, int ranks, std::uint64_t data_steps,
            std::uint64_t room);

  /// The work of one step of the bucket.
  struct Stage {
    std::size_t pass = 0;     ///< The level; the number of levels stands for the last pass.
    std::uint64_t step = 0;   ///< Counted from the start of the pass or exchange.
    std::uint64_t begin = 0;  ///< First step of the pass, which needs all products before it.
    bool exchange = false;
  };

  Stage stage_of(std::uint64_t step) const;

  bool last_pass(const Stage& stage) const { return stage.pass == levels_.size(); }

  std::uint64_t steps() const { return steps_; }

  /// Adds the products of `count` elements of `part` from all ranks' inputs.
  void add(const Stage& stage, std::size_t part, const void* const* inputs, std::uint64_t count);

  /// This rank's products that move in a step of an exchange.
  std::span<const AdasumDots> products(const Stage& stage);

  /// Adds one rank's products; called for the ranks in order.
  void take(const Stage& stage, std::span<const AdasumDots> products);

  /// Called after the last rank's products of a step: updates the weights when all are there.
  void finish(const Stage& stage);

  /// Weights of the ranks' inputs for `part`, times prescale and postscale.
  const double* weights(std::size_t part) const { return weights_.data() + part * ranks_; }

 private:
  void begin_level(std::size_t level);

  std::size_t first_product(const Stage& stage) const { return stage.step * per_step_; }

  const DType dtype_;
  const double scale_;
  const std::size_t parts_;
  const std::size_t ranks_;
  const std::uint64_t data_steps_;
  const std::size_t per_step_;  ///< Products that fit a step of an exchange.
  const std::vector<std::vector<AdasumPair>> levels_;
  std::vector<std::uint64_t> exchange_steps_;  ///< By level.
  std::uint64_t steps_ = 0;

  std::vector<kernels::DotsState> states_;  ///< For the current level: part by part, pair by pair.
  std::vector<AdasumDots> own_;             ///< The same, added up.
  std::vector<AdasumDots> sums_;            ///< The sum over all ranks.
  std::vector<double> weights_;             ///< Part by part, rank by rank.
};

}  // namespace horo::runtime
