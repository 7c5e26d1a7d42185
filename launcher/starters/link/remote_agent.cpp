// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/remote_agent.hpp"

#include <fmt/format.h>

#include "base/text/printable.hpp"

namespace horo::launcher {

namespace {

constexpr std::size_t kMostWords = 2048;

constexpr std::string_view kScript =
    R"(a=$1; [ -x "$a" ] || a=$(command -v horo-agent) || )"
    R"({ echo "there is no $1 there, and no horo-agent in PATH=$PATH" >&2; exit 127; }; exec "$a")";

std::string quoted(std::string_view word) {
  std::string text = "'";
  for (const char c : word) {
    if (c == '\'') {
      text += R"('\'')";
    } else {
      text += c;
    }
  }
  return text + "'";
}

}  // namespace

std::vector<std::string> remote_command(const std::string& path) {
  return {"sh", "-c", std::string(kScript), "horo-agent", path};
}

std::string remote_command_line(const std::string& path) {
  // The first part saves a second shell, which would cost a tenth of a login.
  auto line = fmt::format("test -x {0} && exec {0}; exec", quoted(path));
  for (const auto& word : remote_command(path)) line += " " + quoted(word);
  return line;
}

void OutputTail::add(std::string_view bytes) {
  kept_.append(bytes);
  if (kept_.size() > kMostWords) kept_.erase(0, kept_.size() - kMostWords);
}

std::string OutputTail::text() const {
  std::string text;
  bool gap = true;
  for (const char c : kept_) {
    if (c == '\n' || c == '\r') {
      gap = true;
      continue;
    }
    if (gap) text += text.empty() ? ": " : "; ";
    gap = false;
    text += c;
  }
  return printable(text);
}

}  // namespace horo::launcher
