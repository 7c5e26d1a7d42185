// SPDX-License-Identifier: Apache-2.0
// The questions of a program that looks at a running job, and the agents' answers. The launcher
// passes both on. Agents inspect their ranks only when they are asked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/board_header.hpp"
#include "launcher/message_forms.hpp"
#include "timeline/live/live_row.hpp"

namespace horo::launcher {

inline constexpr std::size_t kMostTensorText = 64;  ///< Bytes of a tensor's name in an answer.
inline constexpr std::size_t kMostMissing = 8;      ///< Ranks in a row of an answer.
inline constexpr std::uint32_t kPieceBytes = 65536;

/// Asks what each rank is doing. The next question follows the answer.
struct Look {
  static constexpr AgentMessageRow kRow = to_agent(15, "look");

  static void fields(auto& /*field*/, auto& /*m*/) {}
};

/// Asks for a part of the ranks' records. At offset 0 the agent takes a new snapshot of them.
struct Fetch {
  std::uint32_t asker = 0;
  std::uint64_t offset = 0;

  static constexpr AgentMessageRow kRow = to_agent(16, "fetch");

  static void fields(auto& field, auto& m) {
    field("asker", m.asker, wire::Fixed{});
    field("offset", m.offset, wire::Fixed{});
  }
};

using Question = std::variant<Look, Fetch>;

/// The answer to Look: a row per rank, without its host. Rows are within limit_row().
struct Viewed {
  std::string problem;  ///< Why there are no rows; empty: there are those of ranks that record.
  std::vector<timeline::LiveRow> rows;

  static constexpr AgentMessageRow kRow = to_launcher(78, "viewed");

  static void fields(auto& field, auto& m) {
    field("problem", m.problem, PrintableText{});
    field("rows", m.rows, list(wire::Fields{}));
  }

  static std::string_view check(const Viewed& m) {
    if (m.rows.size() > kMaxLocalRanks) return "has more rows than a host has ranks";
    return std::ranges::all_of(m.rows, is_plausible) ? "" : "has an invalid row";
  }

 private:
  static bool is_plausible(const timeline::LiveRow& row) {
    return row.rank >= 0 && row.rank < kMostRanks && row.for_ns >= 0 && row.lag_ns >= 0 &&
           row.tensor.size() <= kMostTensorText && row.missing.size() <= kMostMissing;
  }
};

/// The answer to Fetch: a part of a snapshot, which holds for each rank its number (i32), the size
/// of its file (u64) and the file.
struct Piece {
  std::uint32_t asker = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;  ///< The size of the whole snapshot.
  std::string problem;     ///< Why there is no snapshot; empty: there is one.
  std::string_view bytes;  ///< Points into the sender's or reader's buffer.

  static constexpr AgentMessageRow kRow = to_launcher(79, "piece");

  static void fields(auto& field, auto& m) {
    field("asker", m.asker, wire::Fixed{});
    field("offset", m.offset, wire::Fixed{});
    field("size", m.size, wire::Fixed{});
    field("problem", m.problem, PrintableText{});
    field("bytes", m.bytes, wire::Rest{.most = kPieceBytes});
  }
};

using Answer = std::variant<Viewed, Piece>;

}  // namespace horo::launcher

template <>
struct horo::FieldsOf<horo::timeline::LiveRow> {
  static void visit(auto& field, auto& row) {
    using horo::timeline::LiveState;
    namespace forms = horo::launcher;
    field("rank", row.rank, wire::Fixed{});
    field("pid", row.pid, wire::Fixed{});
    field("state", row.state, wire::Choice{LiveState::starts, LiveState::ended});
    field("tensor", row.tensor, forms::kText);
    field("tensors", row.tensors, wire::Fixed{});
    field("for_ns", row.for_ns, wire::Fixed{});
    field("missing", row.missing, forms::list(wire::Fixed{}));
    field("operations_per_s", row.operations_per_s, wire::Figure{});
    field("bytes_per_s", row.bytes_per_s, wire::Figure{});
    field("waiting", row.waiting, wire::Figure{});
    field("lag_ns", row.lag_ns, wire::Fixed{});
    field("stalls", row.stalls, wire::Fixed{});
    field("lost", row.lost, wire::Fixed{});
  }
};
