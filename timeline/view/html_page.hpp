// SPDX-License-Identifier: Apache-2.0
// The report as one HTML page, which needs a browser but no network. Pure.
#pragma once

#include <string>

#include "timeline/analysis/analysis.hpp"
#include "timeline/view/page_data.hpp"

namespace horo::timeline {

/// The page without its data, which goes to the places {{FIGURES}} and {{OPERATIONS}}.
extern const char* const kPage;

std::string as_html(const Figures& figures, PageData& data);

}  // namespace horo::timeline
