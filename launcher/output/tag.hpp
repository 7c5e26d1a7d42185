// SPDX-License-Identifier: Apache-2.0
// The tag in front of each line, from a template such as "[{rank}] ".
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
  /// Replaces `rank` for a line that several ranks wrote; empty: one rank wrote it.
  std::string_view ranks{};
  LocalRank local_rank{0};
  int size = 1;
  std::string_view host;
  std::string_view job;
  Stream stream = Stream::out;
};

/// A parsed template. Immutable. Thread: any.
class TagFormat {
 public:
  /// Lines get no tag.
  TagFormat() = default;

  /// `{{` and `}}` stand for braces. Fails: invalid_argument, for an unknown field or a single
  /// brace.
  static Result<TagFormat> parse(std::string_view text);

  bool empty() const { return parts_.empty(); }

  /// True when the tag contains the rank.
  bool names_rank() const;

  /// True when the tag contains the time.
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

/// "0-3,7"; `ranks` in ascending order.
std::string list_ranks(const std::vector<Rank>& ranks);

/// Reads a list such as "0-3,7" as one flag per rank. Fails: invalid_argument, for text that is not
/// such a list, and for ranks that are not below `size`.
Result<std::vector<bool>> parse_ranks(std::string_view text, int size);

/// The terminal sequence that switches to the colour of `rank`; kColourOff switches back.
std::string colour_of(Rank rank);
inline constexpr std::string_view kColourOff = "\x1b[0m";

}  // namespace horo::launcher
