// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "apps/check-build/probes.hpp"

namespace horo::apps {

/// The findings in the sections, words and order of `horovodrun --check-build`, for scripts that
/// look for them. Pure.
std::string horovod_table(const std::vector<Finding>& findings);

}  // namespace horo::apps
