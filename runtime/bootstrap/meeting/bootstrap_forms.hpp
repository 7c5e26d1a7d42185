// SPDX-License-Identifier: Apache-2.0
// How the fields of the messages that ranks exchange before they share a board look on the wire,
// where base/codec/wire_forms.hpp has no form for them. docs/design/standalone.md has the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/board_header.hpp"
#include "base/codec/wire_message.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"

namespace horo::runtime::bootstrap {

/// A length of 32 bits and the bytes.
inline constexpr wire::Text<std::uint32_t> kText{};

/// A count of 32 bits and the elements, each of `least_bytes` at least.
template <typename Element>
constexpr auto list(Element element, std::size_t least_bytes = 4) {
  return wire::list_of<std::uint32_t>(element, least_bytes);
}

/// An error's code in 32 bits. An unknown one, or one that is no error, becomes Errc::protocol.
struct ErrorCode {
  static void write(ByteWriter& out, Errc code) { out.fixed(static_cast<std::uint32_t>(code)); }

  static void read(ByteReader& in, Errc& code) {
    const auto number = in.fixed<std::uint32_t>();
    const bool known = number != 0 && number <= static_cast<std::uint32_t>(kLastErrc);
    code = known ? static_cast<Errc>(number) : Errc::protocol;
  }
};

/// The ranks of a host, one at least: runs of a first rank and a length, because ranks mostly
/// follow each other.
struct RankRuns {
  static void write(ByteWriter& out, const std::vector<Rank>& ranks) {
    std::vector<std::pair<int, std::uint32_t>> runs;
    for (const auto rank : ranks) {
      const bool continues =
          !runs.empty() && runs.back().first + static_cast<int>(runs.back().second) == rank.value();
      if (!continues) runs.emplace_back(rank.value(), 0);
      ++runs.back().second;
    }
    wire::LengthForm<std::uint32_t>::write(out, runs.size());
    for (const auto& [first, length] : runs) out.fixed(first).fixed(length);
  }

  /// At most kMaxLocalRanks ranks, whatever the lengths claim.
  static void read(ByteReader& in, std::vector<Rank>& ranks) {
    constexpr std::uint32_t kMostRank = 1U << 30U;
    constexpr auto kMost = static_cast<std::size_t>(kMaxLocalRanks);
    const auto runs = in.count(wire::LengthForm<std::uint32_t>::read(in), 8);
    for (std::size_t i = 0; i < runs && in.good(); ++i) {
      const auto first = in.fixed<std::uint32_t>();
      const auto length = in.fixed<std::uint32_t>();
      if (first > kMostRank || length > kMost || ranks.size() + length > kMost)
        in.refuse("are too many or too large");
      for (std::uint32_t j = 0; j < length && in.good(); ++j)
        ranks.emplace_back(static_cast<int>(first + j));
    }
    if (ranks.empty()) in.refuse("are none");
  }
};

}  // namespace horo::runtime::bootstrap
