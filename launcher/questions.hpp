// SPDX-License-Identifier: Apache-2.0
// What a person who looks at a running job asks its agents, through the launcher, and what they
// answer. Without questions nobody does anything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "timeline/live_row.hpp"

namespace horo::launcher {

inline constexpr std::size_t kMostTensorText = 64;  ///< Bytes of a tensor's name in an answer.
inline constexpr std::size_t kMostMissing = 8;      ///< Ranks in a row of an answer.
inline constexpr std::uint32_t kPieceBytes = 65536;

/// What are your ranks about? One at a time: the next follows the answer.
struct Look {};

/// A part of what your ranks have recorded. At 0 the agent takes a new snapshot.
struct Fetch {
  std::uint32_t asker = 0;
  std::uint64_t offset = 0;
};

using Question = std::variant<Look, Fetch>;

/// Rows without host; bounded by bound().
struct Viewed {
  std::string problem;  ///< Why there are no rows; empty: there are those that record.
  std::vector<timeline::LiveRow> rows;
};

/// Of a snapshot: for each rank its number (i32), its size (u64) and its file.
struct Piece {
  std::uint32_t asker = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;  ///< Of the whole.
  std::string problem;     ///< Why there is none; empty: nothing is wrong.
  std::string_view bytes;  ///< Into somebody's buffer.
};

using Answer = std::variant<Viewed, Piece>;

}  // namespace horo::launcher
