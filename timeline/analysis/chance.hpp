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
  constexpr double kNothing = 1e-17;  // A smaller share of the sum does not change it.
  if (ranks < 2 || last == 0 || last > occasions) return 1;
  const auto n = static_cast<double>(occasions);
  const double share = 1 / static_cast<double>(ranks);
  auto k = static_cast<double>(last);
  // The median of the distribution is not below the mean rounded down: from there up lies at least
  // one half, and there are two ranks or more.
  if (k <= n * share) return 1;
  // The logarithm of the first term; its factors alone would overflow.
  double term = std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) +
                         k * std::log(share) + (n - k) * std::log1p(-share));
  double tail = 0;
  // Above the mean each term is smaller than the one before.
  for (; k <= n && term > tail * kNothing; ++k) {
    tail += term;
    term *= (n - k) / (k + 1) * share / (1 - share);
  }
  return std::min(1.0, tail * static_cast<double>(ranks));
}

}  // namespace horo::timeline
