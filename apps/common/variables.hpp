// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace horo::apps {

/// A warning for each variable of `environment` (an array like environ) whose name is almost that
/// of a knob. Without it, a mistyped variable would silently have no effect. Pure.
std::vector<std::string> mistyped_variables(const char* const* environment);

}  // namespace horo::apps
