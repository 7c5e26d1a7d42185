// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/adasum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace horo::runtime {

Share adasum_slice(std::uint64_t elements, int ranks, int rank) {
  const auto units = share_of((elements + kAdasumUnit - 1) / kAdasumUnit, ranks, rank);
  const auto first = std::min(units.first * kAdasumUnit, elements);
  return {.first = first, .count = std::min(units.count * kAdasumUnit, elements - first)};
}

std::vector<std::vector<AdasumPair>> adasum_tree(int ranks) {
  std::vector<std::vector<AdasumPair>> levels;
  for (int width = 1; width < ranks; width *= 2) {
    auto& pairs = levels.emplace_back();
    for (int first = 0; first + width < ranks; first += 2 * width) {
      pairs.push_back(
          {.first = first, .middle = first + width, .last = std::min(first + 2 * width, ranks)});
    }
  }
  return levels;
}

AdasumDots::AdasumDots(const kernels::DotsState& state) {
  const auto total = [](const double(&lanes)[16]) {
    double sum = 0;
    for (const double lane : lanes) sum += lane;
    return sum;
  };
  ab = total(state.lanes[0]);
  aa = total(state.lanes[1]);
  bb = total(state.lanes[2]);
}

AdasumDots& AdasumDots::operator+=(const AdasumDots& more) {
  ab += more.ab;
  aa += more.aa;
  bb += more.bb;
  return *this;
}

void combine(const AdasumPair& pair, const AdasumDots& dots, std::span<double> weights) {
  // A vector close to zero has no direction that the other could have in common.
  static const double least = std::sqrt(std::numeric_limits<double>::min());
  const auto share = [&](double square) { return square < least ? 1 : 1 - dots.ab / (2 * square); };
  for (int r = pair.first; r < pair.last; ++r)
    weights[static_cast<std::size_t>(r)] *= share(r < pair.middle ? dots.aa : dots.bb);
}

void add_dots(const AdasumPair& pair, DType dtype, const void* const* inputs,
              std::span<const double> weights, std::uint64_t count, kernels::DotsState& state) {
  const kernels::Weighted a{.src = inputs + pair.first,
                            .weights = weights.data() + pair.first,
                            .n = pair.middle - pair.first};
  const kernels::Weighted b{.src = inputs + pair.middle,
                            .weights = weights.data() + pair.middle,
                            .n = pair.last - pair.middle};
  kernels::dots_kernel(dtype)(state, a, b, count);
}

void adasum(DType dtype, double scale, std::span<const void* const> inputs, std::uint64_t elements,
            void* out) {
  const auto n = static_cast<int>(inputs.size());
  std::vector<double> weights(inputs.size(), 1.0);
  std::vector<const void*> sources(inputs.size());
  for (const auto& pairs : adasum_tree(n)) {
    std::vector<AdasumDots> sums(pairs.size());
    for (int owner = 0; owner < n; ++owner) {
      const auto slice = adasum_slice(elements, n, owner);
      for (std::size_t r = 0; r < inputs.size(); ++r)
        sources[r] = static_cast<const std::byte*>(inputs[r]) + slice.first * size_of(dtype);
      for (std::size_t p = 0; p < pairs.size(); ++p) {
        kernels::DotsState state;
        add_dots(pairs[p], dtype, sources.data(), weights, slice.count, state);
        sums[p] += AdasumDots(state);
      }
    }
    for (std::size_t p = 0; p < pairs.size(); ++p) combine(pairs[p], sums[p], weights);
  }
  for (auto& weight : weights) weight *= scale;
  kernels::weighted_sum_kernel(dtype)(
      &out, 1, {.src = inputs.data(), .weights = weights.data(), .n = n}, elements);
}

}  // namespace horo::runtime
