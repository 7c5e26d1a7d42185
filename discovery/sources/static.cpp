// SPDX-License-Identifier: Apache-2.0
#include "discovery/sources/static.hpp"

namespace horo::discovery {

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace

Result<HostSet> StaticSource::list(Deadline) {
  if (trimmed(text_).empty()) {
    return fail(Errc::invalid_argument, "the host list is empty; write name:slots,name:slots");
  }
  HostSet hosts;
  std::string_view rest = text_;
  while (true) {
    const auto comma = rest.find(',');
    const auto entry = trimmed(rest.substr(0, comma));
    if (entry.empty()) {
      return fail(Errc::invalid_argument, "the host list '{}' has an empty entry", text_);
    }
    HORO_TRY(const auto host, parse_host(entry));
    hosts.add(host);
    if (comma == std::string_view::npos) return hosts;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace horo::discovery
