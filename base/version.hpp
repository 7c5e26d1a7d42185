// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace horo {

/// Version of this build: "0.1.0". Launcher, agent and libhoro of one job must agree.
std::string_view version();

/// major * 10000 + minor * 100 + patch.
std::uint32_t version_code();

}  // namespace horo
