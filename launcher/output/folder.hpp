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

/// Makes one row of the same line of many ranks. A row waits a moment for further ranks, and rows
/// leave in the order in which they came, so each rank's lines keep theirs: a line joins only a row
/// behind the rank's last one. Knows no clock. Thread: owner.
class Folder {
 public:
  static constexpr Duration kWindow = std::chrono::milliseconds(200);
  static constexpr std::size_t kMost = std::size_t{256} * 1024;  ///< Bytes that may wait.

  /// The time of a line, as the screen has it.
  struct Stamp {
    std::string front;  ///< In front of the tag.
    std::string time;   ///< In the tag.
  };

  struct Row {
    std::vector<Rank> ranks;  ///< In the order in which they wrote it.
    Stream stream = Stream::out;
    Stamp stamp;  ///< Of the first.
    std::string body;
    std::string end;
    bool continues = false;
  };

  explicit Folder(std::size_t ranks) : last_(ranks, 0), gone_(ranks, false), expected_(ranks) {}

  /// Lines of one key and the same text become one row.
  void add(Rank rank, Stream stream, const LinePiece& piece, std::string_view key,
           const Stamp& stamp, TimePoint now);

  /// No row waits for `rank` any more.
  void leave(Rank rank);

  /// The next row that waits for nobody any more, or is one too many.
  std::optional<Row> next(TimePoint now);

  /// The next row, whatever it waits for.
  std::optional<Row> pop();

  /// When next() will have one; nothing waits: nullopt.
  std::optional<TimePoint> due() const;

 private:
  struct Waiting {
    Row row;
    std::string key;  ///< Empty: nothing may join.
    TimePoint since{};
  };

  bool has_all(const Row& row) const;

  std::deque<Waiting> rows_;
  std::uint64_t first_ = 1;  ///< Number of the row in front.
  std::unordered_map<std::string, std::deque<std::uint64_t>> numbers_;  ///< By key, in order.
  std::vector<std::uint64_t> last_;  ///< By rank: the number of its last row.
  std::vector<bool> gone_;           ///< By rank.
  std::size_t expected_;             ///< Ranks that are not gone.
  std::size_t bytes_ = 0;
};

}  // namespace horo::launcher
