// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/strong.hpp"
#include "launcher/output/line_assembler.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// Joins equal lines of several ranks into one row. A row waits a moment for further ranks. Rows
/// leave in the order in which they began, and a line only joins a row after the rank's last one,
/// so the lines of each rank keep their order. Knows no clock. Thread: owner.
class LineGrouper {
 public:
  static constexpr Duration kWindow = std::chrono::milliseconds(200);
  static constexpr std::size_t kMost = std::size_t{256} * 1024;  ///< Most bytes that wait.

  /// The time of a line, in the form that the screen shows.
  struct Stamp {
    std::string front;  ///< Text in front of the tag.
    std::string time;   ///< Text of the tag's field {time}.
  };

  struct Row {
    std::vector<Rank> ranks;  ///< In the order in which they wrote it.
    Stream stream = Stream::out;
    Stamp stamp;  ///< The first rank's.
    std::string body;
    std::string end;
    bool continues = false;
  };

  explicit LineGrouper(std::size_t ranks)
      : last_(ranks, 0), gone_(ranks, false), expected_(ranks) {}

  /// Lines with the same key and text become one row.
  void add(Rank rank, Stream stream, const LinePiece& piece, std::string_view key,
           const Stamp& stamp, TimePoint now);

  /// From now on no row waits for `rank`.
  void leave(Rank rank);

  /// The next row that is complete or has waited long enough, or must leave to free memory.
  std::optional<Row> next(TimePoint now);

  /// The next row, complete or not.
  std::optional<Row> pop();

  /// When next() will return a row; nullopt: no row waits.
  std::optional<TimePoint> due() const;

 private:
  struct Waiting {
    Row row;
    std::string key;  ///< Empty: no line may join.
    TimePoint since{};
  };

  bool has_all(const Row& row) const;

  std::deque<Waiting> rows_;
  std::uint64_t first_ = 1;  ///< Number of the first row in rows_.
  std::unordered_map<std::string, std::deque<std::uint64_t>>
      numbers_;                      ///< Row numbers by key, ascending.
  std::vector<std::uint64_t> last_;  ///< By rank: the number of its last row.
  std::vector<bool> gone_;           ///< By rank.
  std::size_t expected_;             ///< Number of ranks that are not gone.
  std::size_t bytes_ = 0;
};

}  // namespace horo::launcher
