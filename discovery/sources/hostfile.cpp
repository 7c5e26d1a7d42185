// SPDX-License-Identifier: Apache-2.0
#include "discovery/sources/hostfile.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

namespace horo::discovery {

namespace {

std::vector<std::string_view> words(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  std::vector<std::string_view> found;
  for (auto first = line.find_first_not_of(kBlanks); first != std::string_view::npos;) {
    const auto end = line.find_first_of(kBlanks, first);
    found.push_back(line.substr(first, end - first));
    first = line.find_first_not_of(kBlanks, end);
  }
  return found;
}

Result<Host> parse_line(const std::vector<std::string_view>& parts) {
  constexpr std::string_view kSlots = "slots=";
  if (parts.size() == 1) return parse_host(parts[0]);
  if (parts.size() > 2 || !parts[1].starts_with(kSlots)) {
    return fail(Errc::invalid_argument,
                "'{}' after host '{}' must be slots=number, and the last word", parts[1], parts[0]);
  }
  if (parts[0].back() != ']' && parts[0].find(':') != std::string_view::npos) {
    return fail(Errc::invalid_argument, "host '{}' gives its slots twice", parts[0]);
  }
  return parse_host(fmt::format("{}:{}", parts[0], parts[1].substr(kSlots.size())));
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

Result<std::string> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "re"));
  if (!file) return fail_errno(errno, "opening it");
  std::string text;
  std::array<char, 4096> block{};
  while (const auto n = std::fread(block.data(), 1, block.size(), file.get()))
    text.append(block.data(), n);
  if (std::ferror(file.get()) != 0) return fail_errno(errno, "reading it");
  return text;
}

}  // namespace

HostfileSource::HostfileSource(std::string path)
    : path_(std::move(path)), name_(fmt::format("hostfile '{}'", path_)) {}

Result<HostSet> HostfileSource::list(Deadline) {
  auto text = read_file(path_);
  if (!text) return Failure(std::move(text).error().context(name_));
  return parse_hostfile(*text).context(name_);
}

Result<HostSet> parse_hostfile(std::string_view text) {
  HostSet hosts;
  for (int number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const auto parts = words(line.substr(0, line.find('#')));
    if (parts.empty()) continue;
    auto host = parse_line(parts);
    if (!host) return Failure(std::move(host).error().context(fmt::format("line {}", number)));
    hosts.add(*host);
  }
  if (hosts.empty())
    return fail(Errc::invalid_argument, "no host in it; write one name:slots per line");
  return hosts;
}

}  // namespace horo::discovery
