// SPDX-License-Identifier: Apache-2.0
// Events of a Chrome trace, one after the other, from a stream of any size: as Horovod, PyTorch's
// profiler and horo write them, whole, cut or never closed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "timeline/json_reader.hpp"

namespace horo::timeline {

/// Texts are its reader's.
struct ChromeEvent {
  char phase = '\0';
  std::string_view name;
  std::string_view category;
  std::string_view pid;  ///< Numbers are text here: some programs write names.
  std::string_view tid;
  double ts_us = 0;
  double duration_us = 0;
  int rank = -1;  ///< Of the profiler's "distributedInfo", where that came before; -1: none.
  /// The first few, scalars only.
  std::vector<std::pair<std::string_view, std::string_view>> arguments;

  /// Empty: none.
  std::string_view argument(std::string_view key) const;
};

struct ChromeOutcome {
  std::uint64_t events = 0;
  int rank = -1;        ///< Of the profiler's "distributedInfo"; -1: none.
  std::string missing;  ///< Why the rest is not there; empty: the file is whole.
};

/// Calls `use` for each event; it may keep nothing of it. Memory does not grow with the file.
/// Fails: protocol (not JSON, or no trace); as `source`.
Result<ChromeOutcome> read_chrome(const ByteSource& source,
                                  const std::function<void(const ChromeEvent&)>& use);

}  // namespace horo::timeline
