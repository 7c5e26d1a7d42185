// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/tune/record/summary_views.hpp"
#include "apps/tune/trials/tune_request.hpp"

namespace horo::apps {

/// Where and how a result is shown.
struct TuneViews {
  bool json = false;
  std::string html;  ///< Empty: no page.
};

/// Prints a result, and writes its page. Returns the exit code.
int show_result(const TuneRecord& record, const TuneSummary& summary, const TuneViews& views);

/// Reports an error that is no usage error. Returns the exit code.
int refuse_tuning(const Error& error);

/// Searches on the cluster that a file describes. Returns the exit code. Blocks: for the
/// simulations.
int tune_simulated(const std::string& file, const std::string& config_out, const TuneViews& views);

/// Tunes a command. Returns the exit code. Blocks: for the trials.
int tune_command(const TuneRequest& request);

}  // namespace horo::apps
