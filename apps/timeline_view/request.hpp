// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/running_job/watch_options.hpp"
#include "base/cli/arguments.hpp"
#include "base/result.hpp"
#include "timeline/analysis/model.hpp"

namespace horo::apps {

/// The command line of `horo timeline-view`.
struct ViewRequest {
  cli::Arguments arguments;
  timeline::Selection selection;
  int top = 10;        ///< How many of the slowest operations are listed.
  WatchOptions watch;  ///< For --live and --follow; the target is not set.

  const std::vector<std::string>& paths() const { return arguments.rest; }

  bool has(std::string_view flag) const { return arguments.find(flag) != nullptr; }
};

/// Parses and checks all words; with --help or --version nothing more is checked.
/// Fails: invalid_argument.
Result<ViewRequest> read_request(const cli::CommandRow& command,
                                 std::span<const char* const> words);

}  // namespace horo::apps
