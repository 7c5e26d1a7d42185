// SPDX-License-Identifier: Apache-2.0
// The hosts whose leaders are connected as a tree, place_of() in base/tree/run_tree.hpp, and
// whether they make one. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/tree/run_tree.hpp"
#include "runtime/tree/frames/rank_ranges.hpp"

namespace horo::runtime::tree {

inline constexpr int kMostRadix = 60;  ///< Sources of a leader fit one word, with bits to spare.
inline constexpr int kMostHosts = 1 << 20;

/// One host of the job.
struct HostRanks {
  std::string name;
  std::vector<Rank> ranks;  ///< Ascending; the first is the leader.
};

/// A hash of all names, ranks, the radix and the settings that have to be the same on all hosts.
/// Leaders with different fingerprints refuse each other.
std::uint64_t fingerprint(const std::vector<HostRanks>& hosts, int radix,
                          std::string_view settings = {});

/// Fails: invalid_argument (no host, a host without ranks, a rank twice or left out, radix).
Status validate(const std::vector<HostRanks>& hosts, int radix);

}  // namespace horo::runtime::tree
