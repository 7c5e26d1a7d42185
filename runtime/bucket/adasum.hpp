// SPDX-License-Identifier: Apache-2.0
// Adasum: a sum that takes less of the part that two gradients have in common. Two vectors combine
// to
//
//   (1 - a*b / 2a*a) a + (1 - a*b / 2b*b) b
//
// and more than two combine by a tree: neighbouring ranks, then neighbouring pairs, and so on. A
// group without a neighbour goes to the next level unchanged, so any number of ranks works. At each
// level a group's vector is a weighted sum of the ranks' inputs. So no intermediate vector is
// stored: each level is one pass over the inputs for its scalar products, and the last pass adds up
// with the final weights.
//
// Bits: the products are those of fixed slices of each tensor, one per rank, added in rank order.
// They depend on the number of ranks, but neither on fusion nor on where the tensors lie.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kernels/kernels.hpp"
#include "runtime/tensor/signature.hpp"

namespace horo::runtime {

/// Elements; slices and the chunks of a slice are multiples of it.
inline constexpr std::uint64_t kAdasumUnit = 64;

/// The elements of a tensor whose products `rank` computes.
Share adasum_slice(std::uint64_t elements, int ranks, int rank);

/// Two neighbouring groups of ranks that combine: [first, middle) and [middle, last).
struct AdasumPair {
  int first = 0;
  int middle = 0;
  int last = 0;
};

/// The pairs of every level for `ranks` ranks; none for one rank.
std::vector<std::vector<AdasumPair>> adasum_tree(int ranks);

/// The products of one pair's vectors.
struct AdasumDots {
  double ab = 0;
  double aa = 0;
  double bb = 0;

  explicit AdasumDots(const kernels::DotsState& state);
  AdasumDots() = default;
  AdasumDots& operator+=(const AdasumDots& more);
};

/// Updates the weights of a pair's ranks to those of the combination.
void combine(const AdasumPair& pair, const AdasumDots& dots, std::span<double> weights);

/// Adds one piece of all ranks' inputs to the products of a pair.
void add_dots(const AdasumPair& pair, DType dtype, const void* const* inputs,
              std::span<const double> weights, std::uint64_t count, kernels::DotsState& state);

/// The whole Adasum of inputs that this process can read; `out` may be one of them.
void adasum(DType dtype, double scale, std::span<const void* const> inputs, std::uint64_t elements,
            void* out);

}  // namespace horo::runtime
