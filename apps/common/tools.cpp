// SPDX-License-Identifier: Apache-2.0
#include "apps/common/tools.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <unistd.h>
#include <vector>

namespace horo::apps {

namespace {

bool executable(const std::string& path) {
  return access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string own_directory() {
  std::array<char, PATH_MAX> path{};
  const auto size = readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) return {};
  const std::string_view text(path.data(), static_cast<std::size_t>(size));
  return std::string(text.substr(0, text.rfind('/')));
}

Result<std::string> find_tool(std::string_view command) {
  const auto name = fmt::format("horo-{}", command);
  const auto here = own_directory();
  if (auto beside = fmt::format("{}/{}", here, name); !here.empty() && executable(beside))
    return beside;
  const char* variable = std::getenv("PATH");
  std::string_view path(variable != nullptr ? variable : "");
  while (!path.empty()) {
    const auto colon = path.find(':');
    // An empty part would mean the working directory; a tool is not looked for there.
    if (const auto part = path.substr(0, colon); !part.empty()) {
      if (auto found = fmt::format("{}/{}", part, name); executable(found)) return found;
    }
    path = colon == std::string_view::npos ? std::string_view() : path.substr(colon + 1);
  }
  return fail(Errc::not_found, "no {} in '{}' or on PATH", name, here);
}

Error become_tool(std::string_view command, std::span<const char* const> arguments) {
  auto path = find_tool(command);
  if (!path) return std::move(path).error();
  std::vector<char*> argv{path->data()};
  for (const char* argument : arguments)
    argv.push_back(const_cast<char*>(argument));  // NOLINT(cppcoreguidelines-pro-type-const-cast):
                                                  // execv's signature; it does not write
  argv.push_back(nullptr);
  execv(path->c_str(), argv.data());
  return fail_errno(errno, *path).take();
}

bool write_out(std::string_view text) {
  while (!text.empty()) {
    const auto written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace horo::apps
