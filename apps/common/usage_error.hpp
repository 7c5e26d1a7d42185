// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.hpp"

namespace horo::apps {

/// Writes "horo run: <message> (see 'horo run --help')" on standard error. Returns
/// exit_code::kUsage.
int usage_error(std::string_view tool, const Error& error);

}  // namespace horo::apps
