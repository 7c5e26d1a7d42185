// SPDX-License-Identifier: Apache-2.0
// Finds variables of the environment that look like settings of Horo or Horovod and do nothing.
#pragma once

#include <string_view>
#include <vector>

#include "base/knobs/settings.hpp"

namespace horo {

/// The variable in which the launcher tells the ranks the subjects that it has warned of, separated
/// by commas.
inline constexpr const char* kWarnedVariable = "HORO_WARNED";

/// A warning for each variable of `environment` (an array like environ) that begins with HOROVOD_
/// and is not known or has no effect, and for each that begins with HORO_ and is almost a knob's.
/// Knobs themselves are left to Settings::warnings(). Pure.
std::vector<KnobWarning> variable_warnings(const char* const* environment);

/// `warnings` without those whose subject `warned`, a value of kWarnedVariable, contains.
std::vector<KnobWarning> without_warned(std::vector<KnobWarning> warnings, std::string_view warned);

}  // namespace horo
