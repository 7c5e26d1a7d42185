// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <ctime>
#include <string>
#include <unistd.h>
#include <utility>

#include "base/text/printable.hpp"

namespace horo::log {

namespace {

constexpr std::array<std::pair<std::string_view, Level>, 7> kNames{{
    {"trace", Level::trace},
    {"debug", Level::debug},
    {"info", Level::info},
    {"warning", Level::warning},
    {"error", Level::error},
    {"fatal", Level::fatal},
    {"warn", Level::warning},
}};

std::atomic<Level> threshold{Level::warning};
std::atomic<bool> timestamps{false};

std::string timestamp() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  return fmt::format("[{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}] ", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     now.tv_nsec / 1000);
}

}  // namespace

std::optional<Level> parse_level(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto& [word, level] : kNames) {
    if (word == lower) return level;
  }
  return std::nullopt;
}

std::string_view name(Level level) {
  for (const auto& [word, candidate] : kNames) {
    if (candidate == level) return word;
  }
  return "unknown";
}

void set_level(Level level) {
  threshold.store(level, std::memory_order_relaxed);
}

bool enabled(Level level) {
  return level >= threshold.load(std::memory_order_relaxed);
}

void set_timestamps(bool on) {
  timestamps.store(on, std::memory_order_relaxed);
}

void write(Level level, std::string_view component, std::string_view text) {
  std::string line = timestamps.load(std::memory_order_relaxed) ? timestamp() : std::string();
  line += "horo: ";
  if (!component.empty()) line += fmt::format("{}: ", component);
  if (level != Level::info) line += fmt::format("{}: ", name(level));
  line += printable_lines(text);
  line += '\n';
  // A single write keeps the lines of several threads and processes apart.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace horo::log
