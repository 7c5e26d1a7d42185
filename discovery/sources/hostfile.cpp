// SPDX-License-Identifier: Apache-2.0
#include "discovery/sources/hostfile.hpp"

#include <optional>
#include <vector>

#include "discovery/host_list.hpp"
#include "discovery/text_file.hpp"

namespace horo::discovery {

namespace {

/// The words behind a host on its line: `slots=4`, and Open MPI's `max_slots=8`, an upper limit.
struct Numbers {
  std::optional<int> slots;
  std::optional<int> most;
};

Result<Numbers> parse_numbers(const std::vector<std::string_view>& parts) {
  Numbers numbers;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto equals = parts[i].find('=');
    const auto key = parts[i].substr(0, equals);
    auto& number = key == "slots" ? numbers.slots : numbers.most;
    const bool known = key == "slots" || key == "max_slots" || key == "max-slots";
    if (equals == std::string_view::npos || !known || number) {
      return fail(Errc::invalid_argument,
                  "'{}' after host '{}' must be slots=number, and the last word", parts[i],
                  parts[0]);
    }
    HORO_TRY(number,
             parse_slots(parts[i].substr(equals + 1), fmt::format("{} {}", parts[0], parts[i]), 0));
  }
  return numbers;
}

Status add_line(HostSet& hosts, const std::vector<std::string_view>& parts, int default_slots) {
  HORO_TRY(const auto numbers, parse_numbers(parts));
  const bool colon = parts[0].back() != ']' && parts[0].find(':') != std::string_view::npos;
  if (numbers.slots && colon)
    return fail(Errc::invalid_argument, "host '{}' gives its slots twice", parts[0]);
  const int slots = numbers.slots.value_or(numbers.most.value_or(default_slots));
  if (numbers.most && slots > *numbers.most) {
    return fail(Errc::invalid_argument, "host '{}' has {} slots, more than its max_slots={}",
                parts[0], slots, *numbers.most);
  }
  return add_entry(hosts, parts[0], slots);
}

}  // namespace

HostfileSource::HostfileSource(std::string path, int default_slots, NoHosts no_hosts)
    : path_(std::move(path)),
      name_(fmt::format("hostfile '{}'", path_)),
      default_slots_(default_slots),
      no_hosts_(no_hosts) {}

Result<Listing> HostfileSource::list(WaitLimit) {
  auto text = read_text_file(path_);
  if (!text) return Failure(std::move(text).error().context(name_));
  auto hosts = parse_hostfile(*text, default_slots_, no_hosts_);
  if (!hosts) return Failure(std::move(hosts).error().context(name_));
  return Listing{.hosts = std::move(*hosts), .from = {}};
}

Result<HostSet> parse_hostfile(std::string_view text, int default_slots, NoHosts no_hosts) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  HostSet hosts;
  for (int number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const auto parts = words(line.substr(0, line.find('#')), " \t\r");
    if (parts.empty()) continue;
    if (auto added = add_line(hosts, parts, default_slots); !added)
      return Failure(std::move(added).error().context(fmt::format("line {}", number)));
  }
  if (hosts.empty() && no_hosts == NoHosts::refused)
    return fail(Errc::invalid_argument, "it names no host; write one name:slots per line");
  return hosts;
}

}  // namespace horo::discovery
