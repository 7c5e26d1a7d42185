// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace horo {

/// Version of this build: "0.1.0". The launcher, the agents and libhoro of one job must have the
/// same version.
std::string_view version();

/// major * 10000 + minor * 100 + patch.
std::uint32_t version_code();

}  // namespace horo
