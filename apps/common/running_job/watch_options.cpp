// SPDX-License-Identifier: Apache-2.0
#include "apps/common/running_job/watch_options.hpp"

#include <algorithm>
#include <chrono>
#include <sys/resource.h>

namespace horo::apps {

Result<WatchOptions> read_watch_options(const cli::Arguments& arguments) {
  constexpr double kShortestInterval = 0.05;
  constexpr double kLongestInterval = 3600;
  WatchOptions options{.json = arguments.find("json") != nullptr,
                       .once = arguments.find("once") != nullptr};
  double seconds = 1;
  HORO_TRY_STATUS(read_number(arguments, "interval", kShortestInterval, kLongestInterval, seconds));
  options.interval = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  if (const auto* hosts = arguments.find("hosts"); hosts != nullptr) {
    HORO_TRY(options.hosts, split_hosts(hosts->value));
  }
  return options;
}

Result<std::vector<std::string>> split_hosts(std::string_view text) {
  std::vector<std::string> hosts;
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    const std::string host(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (host.empty() || host.front() == '-')
      return fail(Errc::invalid_argument, "option '--hosts': '{}' is not the name of a host", host);
    hosts.push_back(host);
  }
  if (hosts.empty()) return fail(Errc::invalid_argument, "option '--hosts': no host is named");
  return hosts;
}

Result<cli::Arguments> parse_in_any_order(const cli::CommandRow& command,
                                          std::span<const char* const> words) {
  cli::Arguments all;
  for (std::vector<const char*> left(words.begin(), words.end()); !left.empty();) {
    HORO_TRY(auto parsed, cli::parse_arguments(command, left));
    for (auto& option : parsed.options) all.options.push_back(std::move(option));
    left.clear();
    if (parsed.rest.empty()) break;
    all.rest.push_back(parsed.rest.front());
    // The parser stopped at this word; it goes on behind the word.
    const auto tail = words.last(parsed.rest.size() - 1);
    left.assign(tail.begin(), tail.end());
  }
  return all;
}

void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace horo::apps
