// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "horo/horo.h"

namespace horo::jax {

/// Finds the functions of the libhoro at `path`, which this process has loaded. Call it before XLA
/// can call a handler. Thread: one. Fails: with false (it is not loaded, or has another ABI).
bool use_library(const char* path);

}  // namespace horo::jax
