// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/agreement/host_tree.hpp"

namespace horo::runtime::tree {

std::uint64_t fingerprint(const std::vector<HostRanks>& hosts, int radix,
                          std::string_view settings) {
  std::uint64_t hash = 14695981039346656037ULL;
  const auto add = [&hash](std::uint64_t value) {
    for (unsigned i = 0; i < 8; ++i) hash = (hash ^ (value >> (8 * i) & 0xffU)) * 1099511628211ULL;
  };
  add(static_cast<std::uint64_t>(radix));
  for (const auto& host : hosts) {
    add(host.name.size());
    for (const char c : host.name) add(static_cast<unsigned char>(c));
    add(host.ranks.size());
    for (const auto rank : host.ranks) add(static_cast<std::uint64_t>(rank.value()));
  }
  for (const char c : settings) add(static_cast<unsigned char>(c));
  return hash;
}

Status validate(const std::vector<HostRanks>& hosts, int radix) {
  if (radix < 1 || radix > kMostRadix) {
    return fail(Errc::invalid_argument, "a tree of radix {}; allowed are 1 to {}", radix,
                kMostRadix);
  }
  if (hosts.empty() || hosts.size() > static_cast<std::size_t>(kMostHosts))
    return fail(Errc::invalid_argument, "{} hosts; allowed are 1 to {}", hosts.size(), kMostHosts);
  RankRanges all;
  int count = 0;
  for (const auto& host : hosts) {
    if (host.ranks.empty()) return fail(Errc::invalid_argument, "host '{}' has no rank", host.name);
    for (const auto rank : host.ranks) all.add(rank);
    count += static_cast<int>(host.ranks.size());
  }
  if (count > kMostRanks || all != RankRanges::of(0, count)) {
    return fail(Errc::invalid_argument,
                "the ranks of the hosts are not 0 ... {}, each once; they are {}", count - 1,
                all.text());
  }
  return {};
}

}  // namespace horo::runtime::tree
