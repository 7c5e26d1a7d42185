// SPDX-License-Identifier: Apache-2.0
// What the kernel knows of the links to other hosts. Jobs on other links have other best settings,
// so the results of searches are kept apart by it.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.hpp"

namespace horo::runtime::tree {

struct LinkFacts {
  Duration round_trip{};        ///< The shortest that was seen; 0: unknown.
  std::int64_t mbit_per_s = 0;  ///< The interface's rate; 0: unknown.

  friend bool operator==(const LinkFacts&, const LinkFacts&) = default;
};

/// Asks the kernel about a connected TCP socket. Blocks: no.
LinkFacts facts_of(int socket);

/// The longer round trip and the lower rate of both; an unknown value does not count.
LinkFacts slower(const LinkFacts& a, const LinkFacts& b);

/// "10000 Mbit/s, round trips below 4 ms". Round trips vary from connection to connection, so they
/// are told in classes, of which each is four times as wide as the one before. Empty: nothing is
/// known.
std::string describe(const LinkFacts& facts);

}  // namespace horo::runtime::tree
