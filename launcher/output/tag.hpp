// SPDX-License-Identifier: Apache-2.0
// What stands in front of each line: a template such as "[{rank}] ".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/strong.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// Values of the fields {rank} {local_rank} {size} {host} {stream} {job} {time}.
struct TagFields {
  Rank rank{0};
  std::string_view
      ranks{};  ///< In place of `rank`, of a line that several ranks wrote; empty: not so.
  LocalRank local_rank{0};
  int size = 1;
  std::string_view host;
  std::string_view job;
  Stream stream = Stream::out;
};

/// A template, read once. Immutable. Thread: any.
class TagFormat {
 public:
  /// Puts nothing in front.
  TagFormat() = default;

  /// `{{` and `}}` are braces. Fails: invalid_argument, for an unknown field or a lone brace.
  static Result<TagFormat> parse(std::string_view text);

  bool empty() const { return parts_.empty(); }

  /// True when the result says which rank it was.
  bool names_rank() const;

  /// True when the result depends on the time of the line.
  bool timed() const { return timed_; }

  std::string render(const TagFields& fields, std::string_view time) const;

 private:
  enum class Field : std::uint8_t { literal, rank, local_rank, size, host, stream, job, time };

  struct Part {
    Field field = Field::literal;
    std::string text;
  };

  static Result<Field> field_named(std::string_view name, std::string_view text);

  std::vector<Part> parts_;
  bool timed_ = false;
};

/// "0-3,7"; `ranks` in order.
std::string list_ranks(const std::vector<Rank>& ranks);

/// What list_ranks makes, as one flag per rank. Fails: invalid_argument, for what is no such list
/// and for ranks that are not among `size`.
Result<std::vector<bool>> parse_ranks(std::string_view text, int size);

/// Terminal sequence that switches to the colour of `rank`; kColourOff switches back.
std::string colour_of(Rank rank);
inline constexpr std::string_view kColourOff = "\x1b[0m";

}  // namespace horo::launcher
