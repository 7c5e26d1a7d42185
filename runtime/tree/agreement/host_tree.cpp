// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/agreement/host_tree.hpp"

#include <algorithm>

namespace horo::runtime::tree {

namespace {

/// Splits what is left of [host, end) without `host` into at most `radix` runs of nearly one size.
std::vector<Branch> split(int host, int end, int radix) {
  std::vector<Branch> children;
  const int rest = end - host - 1;
  const int parts = std::min(rest, radix);
  int at = host + 1;
  for (int i = 0; i < parts; ++i) {
    const int size = rest / parts + (i < rest % parts ? 1 : 0);
    children.push_back({.first = at, .end = at + size});
    at += size;
  }
  return children;
}

}  // namespace

TreePlace place_of(int host, int hosts, int radix) {
  TreePlace place{.host = 0, .end = hosts};
  place.children = split(0, hosts, radix);
  while (place.host != host) {
    const auto child = std::find_if(place.children.begin(), place.children.end(),
                                    [host](const Branch& c) { return host < c.end; });
    HORO_CHECK(child != place.children.end() && host >= child->first);
    place = {.host = child->first,
             .end = child->end,
             .parent = place.host,
             .depth = place.depth + 1,
             .children = split(child->first, child->end, radix)};
  }
  return place;
}

int depth_of(int hosts, int radix) {
  // The first child's subtree is never smaller than its siblings'.
  int depth = 0;
  for (int size = hosts; size > 1; ++depth) size = (size - 1 + radix - 1) / radix;
  return depth;
}

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
