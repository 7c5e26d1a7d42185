// SPDX-License-Identifier: Apache-2.0
// The request to `horo tune`: its own options, and those of `horo run`.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/run_invocation.hpp"
#include "base/cli/arguments.hpp"
#include "base/result.hpp"

namespace horo::apps {

enum class TrialMode : std::uint8_t {
  automatic,  ///< Online; by restarts if the program ends too soon for that.
  online,     ///< One run, in which the runtime tries settings.
  restart,    ///< One run per trial.
};

struct TuneRequest {
  bool json = false;
  bool dry_run = false;
  bool wall_time = false;   ///< Compare the command's duration, whatever the runtime measures.
  bool whole_runs = false;  ///< Let each run end by itself.
  TrialMode mode = TrialMode::automatic;
  std::string html;
  std::string config_out;  ///< Empty: not named.
  std::string resume;
  std::string space;
  double budget_seconds = std::numeric_limits<double>::infinity();
  std::size_t trials = 42;
  std::size_t failures = 3;
  std::vector<std::string> run_words;  ///< Options for `horo run`.
  RunInvocation job;                   ///< Their meaning, with the command.
};

/// The knobs of a call without a command. Fails: as parse_run().
Result<Settings> settings_of_tune(const cli::Arguments& arguments,
                                  const std::function<const char*(const char*)>& lookup);

/// Blocks: for the config file. Fails: as parse_run; invalid_argument (options of `horo tune`).
Result<TuneRequest> read_tune_request(const cli::Arguments& arguments,
                                      const std::function<const char*(const char*)>& lookup);

/// "5m", "90", "1.5h" in seconds. Pure. Fails: invalid_argument.
Result<double> parse_budget(std::string_view text);

}  // namespace horo::apps
