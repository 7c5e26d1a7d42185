// SPDX-License-Identifier: Apache-2.0
// The earlier of two deadlines, each of which may be none.
#pragma once

#include <algorithm>
#include <optional>

#include "base/clock.hpp"

namespace horo::launcher {

inline std::optional<TimePoint> earliest(std::optional<TimePoint> a, std::optional<TimePoint> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace horo::launcher
