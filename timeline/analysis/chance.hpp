// SPDX-License-Identifier: Apache-2.0
// Whether it can be chance that one rank was last so often. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace horo::timeline {

/// The probability that one of `ranks` ranks is last on at least `last` of `occasions` occasions
/// although each rank is equally likely to be last on each: the tail of a binomial distribution,
/// times the number of ranks that could have been the one (Bonferroni), at most 1.
inline double chance_of_last(std::uint64_t last, std::uint64_t occasions, std::uint64_t ranks) {
  if (ranks < 2 || last == 0 || last > occasions) return 1;
  const auto n = static_cast<double>(occasions);
  const double share = 1 / static_cast<double>(ranks);
  double tail = 0;
  for (auto k = occasions; k >= last; --k) {
    const auto x = static_cast<double>(k);
    // The logarithm of the binomial term; its factors alone would overflow.
    const double term = std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) +
                        x * std::log(share) + (n - x) * std::log1p(-share);
    tail += std::exp(term);
  }
  return std::min(1.0, tail * static_cast<double>(ranks));
}

}  // namespace horo::timeline
