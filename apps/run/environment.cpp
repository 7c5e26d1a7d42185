// SPDX-License-Identifier: Apache-2.0
#include "apps/run/environment.hpp"

#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <string_view>
#include <unordered_set>

namespace horo::apps {

namespace {

bool is_forwarded(std::string_view name) {
  return !name.empty() && name != "OLDPWD" && !name.starts_with("BASH_FUNC_") &&
         !describes_rank(name);
}

}  // namespace

Environment inherited_environment(const char* const* entries, const Environment& common) {
  std::unordered_set<std::string_view> seen;
  for (const auto& [name, value] : common) seen.insert(name);
  Environment environment;
  for (; *entries != nullptr; ++entries) {
    const std::string_view entry(*entries);
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const auto name = entry.substr(0, equals);
    if (is_forwarded(name) && seen.insert(name).second)
      environment.emplace_back(name, entry.substr(equals + 1));
  }
  return environment;
}

std::string loopback_interface() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const auto* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_LOOPBACK) != 0 && (entry->ifa_flags & IFF_UP) != 0)
      return entry->ifa_name;
  }
  return {};
}

}  // namespace horo::apps
