// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace horo::apps {

/// A warning for each variable of `environment` (as environ) whose name is nearly that of a knob: a
/// mistyped variable would otherwise be silently without effect. Pure.
std::vector<std::string> mistyped_variables(const char* const* environment);

}  // namespace horo::apps
