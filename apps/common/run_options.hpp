// SPDX-License-Identifier: Apache-2.0
// From arguments to the options that are no knobs.
#pragma once

#include "apps/common/run_invocation.hpp"
#include "base/cli/arguments.hpp"

namespace horo::apps {

/// Everything but the knobs: typed values, and which options exclude each other.
struct RunHead {
  RunAction action = RunAction::run;
  RunOptions options;
  std::string config_file;
};

/// Pure. Fails: invalid_argument.
Result<RunHead> read_run_head(const cli::Arguments& arguments);

}  // namespace horo::apps
