// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"

namespace horo::launcher {

using horo::UniqueFd;

}  // namespace horo::launcher
