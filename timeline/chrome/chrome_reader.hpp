// SPDX-License-Identifier: Apache-2.0
// Reads the events of a Chrome trace from a stream of any size, as Horovod, PyTorch's profiler and
// Horo write them. The trace may be cut or never closed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "timeline/chrome/json_reader.hpp"

namespace horo::timeline {

/// The texts belong to the reader.
struct ChromeEvent {
  char phase = '\0';
  std::string_view name;
  std::string_view category;
  std::string_view pid;  ///< A text, because some programs write names instead of numbers.
  std::string_view tid;
  double ts_us = 0;
  double duration_us = 0;
  int rank = -1;  ///< From the profiler's "distributedInfo", if that came before; -1: unknown.
  /// The first few arguments that are scalars.
  std::vector<std::pair<std::string_view, std::string_view>> arguments;

  /// Empty where there is no such argument.
  std::string_view argument(std::string_view key) const;
};

struct ChromeOutcome {
  std::uint64_t events = 0;
  int rank = -1;        ///< From the profiler's "distributedInfo"; -1: unknown.
  std::string missing;  ///< Why the rest of the trace is missing; empty: the trace is complete.
};

/// Calls `use` for each event. The event's texts are valid only during the call. Memory does not
/// grow with the file. Fails: protocol (not JSON, or not a trace); as `source`.
Result<ChromeOutcome> read_chrome(const ByteSource& source,
                                  const std::function<void(const ChromeEvent&)>& use);

}  // namespace horo::timeline
