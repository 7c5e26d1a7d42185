// SPDX-License-Identifier: Apache-2.0
// Which leaders are connected: a tree over the hosts 0 ... n - 1 in which every subtree is a run of
// neighbouring hosts, so that its ranks are few ranges. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "runtime/tree/frames/rank_ranges.hpp"

namespace horo::runtime::tree {

inline constexpr int kMostRadix = 60;  ///< Sources of a leader fit one word, with bits to spare.
inline constexpr int kMostHosts = 1 << 20;

/// One host of the job.
struct HostRanks {
  std::string name;
  std::vector<Rank> ranks;  ///< Ascending; the first is the leader.
};

struct Branch {
  int first = 0;  ///< The child's host.
  int end = 0;    ///< One past the last host of its subtree.

  friend bool operator==(const Branch&, const Branch&) = default;
};

/// A host's place: [host, end) is its subtree.
struct TreePlace {
  int host = 0;
  int end = 0;
  int parent = -1;  ///< -1: the root, host 0.
  int depth = 0;    ///< Links between here and the root.
  std::vector<Branch> children;
};

/// The place of `host` among `hosts`, with at most `radix` children each.
TreePlace place_of(int host, int hosts, int radix);

/// Links between the root and the host that is farthest away.
int depth_of(int hosts, int radix);

/// A hash of all names, ranks, the radix and the settings that have to be the same on all hosts.
/// Leaders with different fingerprints refuse each other.
std::uint64_t fingerprint(const std::vector<HostRanks>& hosts, int radix,
                          std::string_view settings = {});

/// Fails: invalid_argument (no host, a host without ranks, a rank twice or left out, radix).
Status validate(const std::vector<HostRanks>& hosts, int radix);

}  // namespace horo::runtime::tree
