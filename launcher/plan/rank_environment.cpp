// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/rank_environment.hpp"

#include <algorithm>
#include <array>
#include <ifaddrs.h>
#include <iterator>
#include <memory>
#include <net/if.h>
#include <string_view>
#include <unordered_set>

#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/knobs/mpi_knobs.hpp"
#include "discovery/sources/slurm.hpp"

namespace horo::launcher {

namespace {

/// Variables of Slurm about one task or one node. Those of the launcher's own task would be wrong
/// for the ranks.
constexpr std::array kSlurmPlace{"SLURM_PROCID", "SLURM_LOCALID", "SLURM_TASK_PID",
                                 "SLURM_GTIDS",  "SLURM_NODEID",  "SLURMD_NODENAME"};

bool is_forwarded(std::string_view name) {
  if (std::ranges::find(kSlurmPlace, name) != kSlurmPlace.end()) return false;
  return !name.empty() && name != "OLDPWD" && !name.starts_with("BASH_FUNC_") &&
         !describes_rank(name);
}

/// `list` is "NAME,PREFIX*"; blanks around an entry do not count.
bool is_listed(std::string_view name, std::string_view list) {
  while (!list.empty()) {
    const auto end = std::min(list.find(','), list.size());
    auto entry = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (entry.empty()) continue;
    if (entry.back() == '*' ? name.starts_with(entry.substr(0, entry.size() - 1)) : name == entry)
      return true;
  }
  return false;
}

}  // namespace

bool EnvironmentFilter::passes(std::string_view name) const {
  return is_listed(name, allow) && !is_listed(name, deny);
}

const char* find_variable(const char* const* entries, std::string_view name) {
  for (; *entries != nullptr; ++entries) {
    const std::string_view entry(*entries);
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=')
      return *entries + name.size() + 1;
  }
  return nullptr;
}

std::string_view variable_or_empty(const char* const* entries, std::string_view name) {
  const char* value = find_variable(entries, name);
  return value == nullptr ? std::string_view{} : value;
}

Environment inherited_environment(const char* const* entries, const Environment& common,
                                  const EnvironmentFilter& filter) {
  std::unordered_set<std::string_view> seen;
  for (const auto& [name, value] : common) seen.insert(name);
  Environment environment;
  for (; *entries != nullptr; ++entries) {
    const std::string_view entry(*entries);
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const auto name = entry.substr(0, equals);
    if (is_forwarded(name) && filter.passes(name) && seen.insert(name).second)
      environment.emplace_back(name, entry.substr(equals + 1));
  }
  return environment;
}

Result<std::vector<std::string>> network_interfaces(const Settings& settings) {
  std::vector<std::string> names;
  const auto given = settings.get(knobs::kNetworkInterfaces);
  if (given.empty()) return names;
  for (std::string_view rest = given;;) {
    const auto comma = rest.find(',');
    const std::string name(rest.substr(0, comma));
    if (name.empty()) {
      return fail(Errc::invalid_argument,
                  "--network-interfaces: an interface in '{}' is empty; write NAME,NAME", given);
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return names;
}

Result<Environment> network_variables(const Settings& settings) {
  Environment variables;
  if (settings.get(knobs::kTcp)) variables.emplace_back("NCCL_IB_DISABLE", "1");
  HORO_TRY(const auto names, network_interfaces(settings));
  if (names.empty()) return variables;
  variables.emplace_back("NCCL_SOCKET_IFNAME", fmt::format("{}", fmt::join(names, ",")));
  variables.emplace_back("GLOO_SOCKET_IFNAME", names.front());
  if (!settings.is_set(knobs::kGlooInterface.text.key)) {
    variables.emplace_back("HORO_GLOO_IFACE", names.front());
    variables.emplace_back("HOROVOD_GLOO_IFACE", names.front());
  }
  return variables;
}

std::vector<std::string> host_variables() {
  return {"HOME",     "USER",          "LOGNAME",
          "SHELL",    "MAIL",          "TMPDIR",
          "HOSTNAME", "SSH_CLIENT",    "SSH_CONNECTION",
          "SSH_TTY",  "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR",
          "DISPLAY",  "XAUTHORITY",    "DBUS_SESSION_BUS_ADDRESS"};
}

Environment slurm_node_variables(const discovery::Lookup& lookup, const std::string& host,
                                 bool is_here) {
  if (lookup("SLURM_JOB_ID") == nullptr) return {};
  const char* own = lookup("SLURMD_NODENAME");
  const auto name = is_here && own != nullptr ? std::string(own) : host;
  const auto components = discovery::slurm_nodes(lookup);
  if (!components) return {};  // The hosts were given, and the variables are not whole.
  for (const auto& nodes : *components) {
    const auto found = std::ranges::find(nodes, name);
    if (found == nodes.end()) continue;
    return {{"SLURMD_NODENAME", name}, {"SLURM_NODEID", std::to_string(found - nodes.begin())}};
  }
  return {};
}

Environment for_another_host(const Environment& environment) {
  const auto local = host_variables();
  Environment others;
  std::copy_if(environment.begin(), environment.end(), std::back_inserter(others),
               [&local](const auto& variable) {
                 return std::find(local.begin(), local.end(), variable.first) == local.end();
               });
  return others;
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

}  // namespace horo::launcher
