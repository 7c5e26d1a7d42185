// SPDX-License-Identifier: Apache-2.0
// How the fields of frames look on the wire, where base/codec/wire_forms.hpp has no form for them.
// docs/design/tree.md has the bytes.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/codec/bytes.hpp"
#include "base/codec/wire_forms.hpp"
#include "base/strong.hpp"
#include "runtime/tree/frames/frame_values.hpp"
#include "runtime/tree/frames/rank_ranges.hpp"
#include "runtime/tree/frames/tensor_ids.hpp"

namespace horo::runtime::tree {

/// Its length as a varint, and the bytes.
using FrameText = wire::Text<wire::VarintSize>;

/// Bounds of a list; `least_bytes` as in wire::List.
struct ListBounds {
  std::size_t least_bytes = 1;
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
};

/// A count as a varint, and the elements.
template <typename Element>
constexpr wire::List<wire::VarintSize, Element> list(Element element, ListBounds bounds) {
  return {.element = element,
          .least_bytes = bounds.least_bytes,
          .least = bounds.least,
          .most = bounds.most};
}

/// A text that the writer cuts at `most` bytes. The reader refuses a longer one.
struct Clipped {
  std::uint64_t most;

  void write(ByteWriter& out, std::string_view text) const {
    FrameText{}.write(out, text.substr(0, most));
  }

  void read(ByteReader& in, std::string& text) const { FrameText{.most = most}.read(in, text); }
};

/// A rank plus one, 0 for none.
struct RankOrNone {
  static void write(ByteWriter& out, Rank rank) {
    out.varint(static_cast<std::uint64_t>(rank.value() + 1));
  }

  static void read(ByteReader& in, Rank& rank) {
    rank = Rank{static_cast<int>(in.varint(kMostRanks)) - 1};
  }
};

struct Ranks {
  static void write(ByteWriter& out, const RankRanges& ranks) { put(out, ranks); }

  static void read(ByteReader& in, RankRanges& ranks) { ranks = take_ranks(in); }
};

struct TensorNumbers {
  static void write(ByteWriter& out, const Ids& ids) { put_ids(out, ids); }

  static void read(ByteReader& in, Ids& ids) { ids = take_ids(in); }
};

/// A tensor's name and whether it was reported before; or, for a tensor that has a number, an empty
/// name and the number.
struct NameOrNumber {
  using Written = std::tuple<const std::string&, const std::uint32_t&, const bool&>;
  using Taken = std::tuple<std::string&, std::uint32_t&, bool&>;

  static void write(ByteWriter& out, const Written& tensor);
  static void read(ByteReader& in, const Taken& tensor);
};

struct WholeSignature {
  static void write(ByteWriter& out, const Signature& signature);
  static void read(ByteReader& in, Signature& signature);
};

struct SignatureVariants {
  static void write(ByteWriter& out, const Variants& variants);
  static void read(ByteReader& in, Variants& variants);
};

/// Row counts as runs of equal ones, because most ranks have the same.
struct RowRuns {
  static void write(ByteWriter& out, const std::vector<std::uint64_t>& rows);
  static void read(ByteReader& in, std::vector<std::uint64_t>& rows);
};

}  // namespace horo::runtime::tree
