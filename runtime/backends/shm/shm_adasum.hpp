// SPDX-License-Identifier: Apache-2.0
// How far this rank is in an Adasum of one bucket.
//
// Its steps share the counters and rings of staged buckets. Each level of the tree is a pass over
// the data, in which every rank computes the products of its slices, and an exchange of the
// products through the result rings; a last pass adds up. All ranks add the products in rank order,
// so all have the same weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/backends/backend.hpp"
#include "runtime/backends/shm/adasum.hpp"

namespace horo::runtime {

class AdasumRun {
 public:
  /// A pass takes `data_steps` steps; a step of an exchange moves at most `room` bytes of each
  /// rank.
  AdasumRun(const Signature& like, std::size_t parts, int ranks, std::uint64_t data_steps,
            std::uint64_t room);

  /// What a step of the bucket does.
  struct Stage {
    std::size_t pass = 0;     ///< The level, or how many there are: the last pass.
    std::uint64_t step = 0;   ///< In the pass or exchange.
    std::uint64_t begin = 0;  ///< First step of the pass: it needs what came before.
    bool exchange = false;
  };

  Stage stage_of(std::uint64_t step) const;

  bool last_pass(const Stage& stage) const { return stage.pass == levels_.size(); }

  std::uint64_t steps() const { return steps_; }

  /// The products of `count` elements of `part`, of all ranks' inputs.
  void add(const Stage& stage, std::size_t part, const void* const* inputs, std::uint64_t count);

  /// This rank's products that travel in a step of an exchange; of all when complete.
  std::span<const AdasumDots> products(const Stage& stage);

  /// Takes one rank's; ranks in order.
  void take(const Stage& stage, std::span<const AdasumDots> products);

  /// After the last rank's of a step: brings the weights up to date when all are there.
  void finish(const Stage& stage);

  /// Weights of the ranks' inputs for `part`, with the factors.
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

  std::vector<kernels::DotsState> states_;  ///< Part by part, pair by pair, of the current level.
  std::vector<AdasumDots> own_;             ///< The same, added up.
  std::vector<AdasumDots> sums_;            ///< Of all ranks.
  std::vector<double> weights_;             ///< Part by part, rank by rank.
};

}  // namespace horo::runtime
