// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/knobs/settings.hpp"

namespace horo::apps {

/// One line per knob: key, value, origin; what was set stands out by its origin.
std::string explain_text(const Settings& settings);

/// {"knobs": [{"key", "value", "origin", "from"}, ...]}.
std::string explain_json(const Settings& settings);

}  // namespace horo::apps
