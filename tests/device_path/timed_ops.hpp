// SPDX-License-Identifier: Apache-2.0
// Operations for a trace that shows when devices worked.
#pragma once

#include "tests/device_path/gpu.hpp"

namespace horo::tests {

/// Runs, in a job whose rank 0 writes a trace: "before"; "slow", with "slow.too" in one bucket,
/// under the plan `arguments[0]`; and "late", whose tensor is ready only when the host says so.
/// Prints when that was. `arguments[1]`: "launched" if operations are launched before their tensors
/// are ready, else "-".
int times(const Gpu& gpu, char** arguments);

/// Without a trace no times are measured.
int untimed(const Gpu& gpu, char** arguments);

}  // namespace horo::tests
