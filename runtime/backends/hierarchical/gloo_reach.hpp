// SPDX-License-Identifier: Apache-2.0
// How many ranks Gloo can connect. Gloo connects each rank with every other one. Each rank writes
// an address for every connection into the job's store, and reads all addresses of all ranks, so
// about 136 n^3 bytes cross the store. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace horo::runtime {

/// A set that Gloo would connect, in a process.
struct GlooSet {
  int ranks = 1;
  int hosts = 1;
  std::uint64_t free_descriptors = ~std::uint64_t{0};  ///< That the process may still open.
};

/// Bytes that the ranks read from the store.
double gloo_store_bytes(int ranks);

/// Descriptors of each process: a connection to each other rank, and for sums by hosts one more to
/// each other host.
std::uint64_t gloo_descriptors(const GlooSet& set);

/// Why Gloo cannot connect this set, with numbers and the way out; empty: it can.
std::string why_not_gloo(const GlooSet& set);

}  // namespace horo::runtime
