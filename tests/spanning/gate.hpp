// SPDX-License-Identifier: Apache-2.0
// Shared by a test and the module gated_module.cpp, which finds it by the address in the variable
// HORO_TEST_GATE.
#pragma once

#include <atomic>

namespace horo::spanning {

/// While it is closed, ranks that connect wait here.
struct Gate {
  std::atomic<bool> closed{false};
  std::atomic<int> waiting{0};
};

}  // namespace horo::spanning
