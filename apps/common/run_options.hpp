// SPDX-License-Identifier: Apache-2.0
// Reads the options that are not knobs.
#pragma once

#include "apps/common/run_invocation.hpp"
#include "base/cli/arguments.hpp"

namespace horo::apps {

/// The most ranks that a job may have.
inline constexpr int kMostRanks = 1'000'000;

/// Everything except the knobs.
struct RunHead {
  RunAction action = RunAction::run;
  RunOptions options;
  std::string config_file;
};

/// Pure. Fails: invalid_argument, also for options that exclude each other.
Result<RunHead> read_run_head(const cli::Arguments& arguments);

}  // namespace horo::apps
