// SPDX-License-Identifier: Apache-2.0
// Log lines for people, on standard error: "horo: launcher: text". Standard output is for results
// and for the ranks. An error is logged by the code that handles it, not by the code that passes it
// on.
#pragma once

#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace horo::log {

enum class Level { trace, debug, info, warning, error, fatal };

/// Accepts the words of knobs and flags in any case: "warning".
std::optional<Level> parse_level(std::string_view text);
std::string_view name(Level level);

/// Drops lines below `level`; the default is warning. Thread: any.
void set_level(Level level);
bool enabled(Level level);

/// Whether each line begins with the time; the default is no. Thread: any.
void set_timestamps(bool on);

/// Writes one whole line with one write(2). Thread: any.
void write(Level level, std::string_view component, std::string_view text);

#define HORO_LOG_LEVEL_(function, level)                                                           \
  template <typename... Args>                                                                      \
  void function(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {  \
    if (enabled(level)) write(level, component, fmt::format(format, std::forward<Args>(args)...)); \
  }
HORO_LOG_LEVEL_(trace, Level::trace)
HORO_LOG_LEVEL_(debug, Level::debug)
HORO_LOG_LEVEL_(info, Level::info)
HORO_LOG_LEVEL_(warn, Level::warning)
HORO_LOG_LEVEL_(error, Level::error)
HORO_LOG_LEVEL_(fatal, Level::fatal)
#undef HORO_LOG_LEVEL_

}  // namespace horo::log
