// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/hierarchical/gloo_reach.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace horo::runtime {

namespace {

constexpr double kAddressBytes = 136;
/// A link of 1 Gbit/s carries that in 20 s, which leaves ranks 10 s of the time that a job has to
/// start.
constexpr double kMostStoreBytes = 2.5e9;
constexpr std::uint64_t kBesideConnections = 8;  ///< Listeners and epoll instances of two meshes.

constexpr const char* kRemedy = "use tcp, which connects ranks when they need it";

}  // namespace

double gloo_store_bytes(int ranks) {
  const double others = ranks - 1;
  return ranks * others * others * kAddressBytes;
}

std::uint64_t gloo_descriptors(const GlooSet& set) {
  return static_cast<std::uint64_t>(set.ranks - 1) + static_cast<std::uint64_t>(set.hosts - 1) +
         kBesideConnections;
}

std::string why_not_gloo(const GlooSet& set) {
  const auto bytes = gloo_store_bytes(set.ranks);
  if (bytes > kMostStoreBytes) {
    return fmt::format(
        "{} ranks would read {:.1f} GB of addresses from the job's store, of which Horo allows {} "
        "GB; {}",
        set.ranks, bytes / 1e9, kMostStoreBytes / 1e9, kRemedy);
  }
  const auto needed = gloo_descriptors(set);
  if (needed > set.free_descriptors) {
    return fmt::format(
        "{} ranks need {} connections and other file descriptors in each process, and this one may "
        "open only {} more; raise the limit (ulimit -n), or {}",
        set.ranks, needed, set.free_descriptors, kRemedy);
  }
  return {};
}

}  // namespace horo::runtime
