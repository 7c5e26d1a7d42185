// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/knobs/settings.hpp"

namespace horo::apps {

/// One line per knob: key, value, origin. The origin shows which knobs were set.
std::string explain_text(const Settings& settings);

/// {"knobs": [{"key", "value", "origin", "from"}, ...]}.
std::string explain_json(const Settings& settings);

}  // namespace horo::apps
