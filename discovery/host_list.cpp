// SPDX-License-Identifier: Apache-2.0
#include "discovery/host_list.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace horo::discovery {

namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::size_t kMostDigits = 9;
constexpr std::size_t kMaxUserName = 64;

bool is_name_character(unsigned char c) {
  return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
}

bool is_ipv6(std::string_view text) {
  return text.find(':') != std::string_view::npos && text.size() <= kMaxHostName &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == ':' || c == '.' || c == '%';
         });
}

/// A range of numbers, each written with at least `width` digits.
struct Range {
  long long first = 0;
  long long last = 0;
  std::size_t width = 0;

  std::size_t count() const { return static_cast<std::size_t>(last - first + 1); }
};

/// A fixed text, or the numbers of a bracket.
struct Piece {
  std::string_view text;
  std::vector<Range> ranges;

  std::size_t count() const {
    std::size_t sum = 0;
    for (const auto& range : ranges) sum += range.count();
    return ranges.empty() ? 1 : sum;
  }
};

std::optional<long long> parse_number(std::string_view text) {
  long long value = 0;
  const auto* end = text.data() + text.size();
  if (text.empty() || text.size() > kMostDigits || std::isdigit(text.front()) == 0) return {};
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return {};
  return value;
}

Result<Range> parse_range(std::string_view text, std::string_view whole) {
  const auto dash = text.find('-');
  const auto low = text.substr(0, dash);
  const auto first = parse_number(low);
  const auto last = dash == std::string_view::npos ? first : parse_number(text.substr(dash + 1));
  if (!first || !last || *last < *first) {
    return fail(Errc::invalid_argument,
                "'{}' in the brackets of '{}' must be a number or a range like 01-16, of at most "
                "{} digits",
                text, whole, kMostDigits);
  }
  return Range{.first = *first, .last = *last, .width = low.size()};
}

Result<Piece> parse_bracket(std::string_view inside, std::string_view whole) {
  Piece piece;
  while (true) {
    const auto comma = inside.find(',');
    HORO_TRY(const auto range, parse_range(inside.substr(0, comma), whole));
    piece.ranges.push_back(range);
    if (comma == std::string_view::npos) return piece;
    inside.remove_prefix(comma + 1);
  }
}

Result<std::vector<Piece>> cut(std::string_view text) {
  std::vector<Piece> pieces;
  for (auto rest = text; !rest.empty();) {
    if (rest.front() != '[') {
      const auto end = std::min(rest.find('['), rest.size());
      pieces.push_back({.text = rest.substr(0, end), .ranges = {}});
      rest.remove_prefix(end);
      continue;
    }
    const auto close = rest.find(']');
    if (close == std::string_view::npos)
      return fail(Errc::invalid_argument, "host '{}' has no closing bracket", text);
    HORO_TRY(auto piece, parse_bracket(rest.substr(1, close - 1), text));
    pieces.push_back(std::move(piece));
    rest.remove_prefix(close + 1);
  }
  return pieces;
}

Status check_pieces(const std::vector<Piece>& pieces, std::string_view text) {
  std::size_t count = 1;
  std::size_t longest = 0;
  for (const auto& piece : pieces) {
    // Programs that are given the name would read a leading '-' as an option.
    const bool optional_front = &piece == &pieces.front() && piece.text.starts_with('-');
    if (optional_front || !std::all_of(piece.text.begin(), piece.text.end(), is_name_character)) {
      return fail(Errc::invalid_argument,
                  "host '{}' must be a name of letters, digits, '.', '_' and, not in front, '-', "
                  "then :slots",
                  text);
    }
    longest += piece.ranges.empty() ? piece.text.size() : kMostDigits;
    count *= std::min(piece.count(), kMaxHosts + 1);
    if (count > kMaxHosts) {
      return fail(Errc::invalid_argument, "host '{}' stands for more than {} hosts", text,
                  kMaxHosts);
    }
  }
  if (longest > kMaxHostName)
    return fail(Errc::invalid_argument, "host '{}' is longer than {} characters", text,
                kMaxHostName);
  return {};
}

std::vector<std::string> appended(const std::vector<std::string>& heads, const Piece& piece) {
  std::vector<std::string> names;
  names.reserve(heads.size() * piece.count());
  for (const auto& head : heads) {
    if (piece.ranges.empty()) names.push_back(head + std::string(piece.text));
    for (const auto& range : piece.ranges) {
      for (auto number = range.first; number <= range.last; ++number)
        names.push_back(fmt::format("{}{:0{}}", head, number, range.width));
    }
  }
  return names;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// The names of an entry and the rest of it: empty, or ':' and the slots.
struct Cut {
  std::vector<std::string> names;
  std::string_view rest;
};

Result<Cut> cut_address(std::string_view entry) {
  const auto close = entry.find(']');
  if (close == std::string_view::npos)
    return fail(Errc::invalid_argument, "host '{}' has no closing bracket", entry);
  const auto name = entry.substr(1, close - 1);
  if (!is_ipv6(name))
    return fail(Errc::invalid_argument, "'{}' in host '{}' is not an IPv6 address", name, entry);
  const auto rest = entry.substr(close + 1);
  if (!rest.empty() && rest.front() != ':') {
    return fail(Errc::invalid_argument, "'{}' after the bracket in host '{}' must be :slots", rest,
                entry);
  }
  return Cut{.names = {std::string(name)}, .rest = rest};
}

Result<Cut> cut_names(std::string_view entry) {
  const auto colon = std::min(entry.find(':'), entry.size());
  const auto rest = entry.substr(colon);
  if (rest.find(':', rest.empty() ? 0 : 1) != std::string_view::npos) {
    return fail(Errc::invalid_argument,
                "host '{}' has several colons; write an IPv6 address in brackets: [address]:slots",
                entry);
  }
  HORO_TRY(auto names, expand_names(entry.substr(0, colon)));
  return Cut{.names = std::move(names), .rest = rest};
}

}  // namespace

std::vector<ListEntry> split_list(std::string_view list) {
  std::vector<ListEntry> entries;
  std::size_t start = 0;
  bool inside = false;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && (list[i] == '[' || list[i] == ']')) inside = list[i] == '[';
    if (i < list.size() && (list[i] != ',' || inside)) continue;
    const auto text = trimmed(list.substr(start, i - start));
    const auto blanks =
        text.empty() ? 0 : static_cast<std::size_t>(text.data() - list.data()) - start;
    entries.push_back({.text = text, .column = start + blanks + 1});
    start = i + 1;
  }
  return entries;
}

Result<std::vector<std::string>> expand_names(std::string_view text) {
  if (text.empty() || text.front() == '[') {
    return fail(Errc::invalid_argument, "host '{}' must be a name of letters, digits, '.', '_'",
                text);
  }
  HORO_TRY(const auto pieces, cut(text));
  HORO_TRY_STATUS(check_pieces(pieces, text));
  std::vector<std::string> names{""};
  for (const auto& piece : pieces) names = appended(names, piece);
  return names;
}

bool is_host_name(std::string_view name) {
  if (is_ipv6(name)) return true;
  return !name.empty() && name.size() <= kMaxHostName && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), is_name_character);
}

bool is_user_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxUserName && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), is_name_character);
}

Result<int> parse_slots(std::string_view text, std::string_view entry, int least) {
  const auto slots = parse_number(text);
  if (!slots || *slots < least || *slots > kMaxSlots) {
    return fail(Errc::invalid_argument, "slots in '{}' must be a whole number from {} to {}", entry,
                least, kMaxSlots);
  }
  return static_cast<int>(*slots);
}

Status add_entry(HostSet& hosts, std::string_view entry, int default_slots) {
  if (entry.empty()) return fail(Errc::invalid_argument, "a host entry is empty; write name:slots");
  const auto at = entry.find('@');
  std::string_view user;
  auto place = entry;
  if (at != std::string_view::npos) {
    user = entry.substr(0, at);
    place.remove_prefix(at + 1);
    if (!is_user_name(user) || place.empty())
      return fail(Errc::invalid_argument, "'{}' must be user@host:slots", entry);
  }
  HORO_TRY(const auto parts, place.front() == '[' ? cut_address(place) : cut_names(place));
  int slots = default_slots;
  if (!parts.rest.empty()) {
    HORO_TRY(slots, parse_slots(parts.rest.substr(1), entry, 0));
  }
  if (hosts.size() + parts.names.size() > kMaxHosts) {
    return fail(Errc::invalid_argument, "with '{}' there would be more than {} hosts", entry,
                kMaxHosts);
  }
  for (const auto& name : parts.names) {
    const auto* known = hosts.find(name);
    if (known != nullptr && known->user != user) {
      return fail(Errc::invalid_argument, "host '{}' is listed with user '{}' and with user '{}'",
                  name, known->user, user);
    }
    hosts.add({.name = name, .slots = slots, .user = std::string(user)});
  }
  return {};
}

Result<HostSet> parse_list(std::string_view list, int default_slots) {
  if (trimmed(list).empty()) {
    return fail(Errc::invalid_argument, "the host list is empty; write name:slots,name:slots");
  }
  HostSet hosts;
  for (const auto& entry : split_list(list)) {
    auto added = entry.text.empty()
                     ? Status(fail(Errc::invalid_argument, "an empty entry; write name:slots"))
                     : add_entry(hosts, entry.text, default_slots);
    if (!added) {
      return Failure(std::move(added).error().context(fmt::format("column {}", entry.column)));
    }
  }
  return hosts;
}

}  // namespace horo::discovery
