// SPDX-License-Identifier: Apache-2.0
// A summary as text, as JSON, and as one page for a browser. Pure.
#pragma once

#include <string>

#include "apps/tune/record/tune_summary.hpp"

namespace horo::apps {

/// Verdicts, the curve of the best so far, and the table of settings. Ends with a newline.
std::string summary_text(const TuneRecord& record, const TuneSummary& summary);

/// Everything. Ends with a newline.
std::string summary_json(const TuneRecord& record, const TuneSummary& summary);

/// A page that needs no network.
std::string summary_page(const TuneRecord& record, const TuneSummary& summary);

/// The page without its data, which goes to the place {{SUMMARY}}.
extern const char* const kTunePage;

}  // namespace horo::apps
