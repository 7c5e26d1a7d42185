// SPDX-License-Identifier: Apache-2.0
// A report as one page that needs nothing but a browser. Pure.
#pragma once

#include <string>

#include "apps/timeline_view/analysis.hpp"
#include "apps/timeline_view/lanes.hpp"

namespace horo::apps {

/// The page without its data: {{FIGURES}} and {{LANES}} stand where they go.
extern const char* const kPage;

std::string as_html(const Figures& figures, Lanes& lanes);

}  // namespace horo::apps
