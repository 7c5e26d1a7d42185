// SPDX-License-Identifier: Apache-2.0
#include "apps/common/running_job/running_launchers.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>

#include "launcher/job/monitor.hpp"

namespace horo::apps {

namespace {

/// Removes a number and the '/' behind it from `text`.
template <typename T>
bool take_part(std::string_view& text, T& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  if (error != std::errc{} || end == text.data() + text.size() || *end != '/') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

}  // namespace

std::optional<RunningLauncher> parse_launcher(std::string_view socket) {
  if (!socket.starts_with(launcher::kMonitorPrefix)) return std::nullopt;
  RunningLauncher found{.socket = std::string(socket), .user = 0, .pid = 0, .job = {}};
  auto rest = socket.substr(launcher::kMonitorPrefix.size());
  if (!take_part(rest, found.user) || !take_part(rest, found.pid) || rest.empty() ||
      found.pid <= 0) {
    return std::nullopt;
  }
  found.job = rest;
  return found;
}

std::vector<RunningLauncher> running_launchers() {
  std::vector<RunningLauncher> all;
  std::ifstream file("/proc/net/unix");
  for (std::string line; std::getline(file, line);) {
    const auto at = line.find('@');  // Marks an abstract name.
    if (at == std::string::npos) continue;
    auto found = parse_launcher(std::string_view(line).substr(at + 1));
    if (!found) continue;
    // A socket's connections are listed under the same name.
    const bool known = std::any_of(all.begin(), all.end(), [&](const RunningLauncher& launcher) {
      return launcher.socket == found->socket;
    });
    if (!known) all.push_back(std::move(*found));
  }
  return all;
}

}  // namespace horo::apps
