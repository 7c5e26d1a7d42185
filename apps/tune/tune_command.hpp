// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "apps/tune/record/summary_views.hpp"
#include "apps/tune/trials/tune_request.hpp"

namespace horo::apps {

/// Where and how a result is shown.
struct TuneViews {
  bool json = false;
  std::string html;  ///< Empty: no page.
};

/// Fails where a folder of a file to write does not exist or cannot be written to, so that no
/// search is made in vain. Empty paths are no files.
Status check_output_paths(std::span<const std::pair<std::string_view, std::string>> options);

/// Prints a result, and then writes its page. Returns the exit code.
int show_result(const TuneRecord& record, const TuneSummary& summary, const TuneViews& views);

/// Reports an error that is no usage error. Returns the exit code.
int refuse_tuning(const Error& error);

/// Searches on the cluster that a file describes. Returns the exit code. Blocks: for the
/// simulations.
int tune_simulated(const std::string& file, const std::string& config_out, const TuneViews& views);

/// Tunes a command. Returns the exit code. Blocks: for the trials.
int tune_command(const TuneRequest& request);

}  // namespace horo::apps
