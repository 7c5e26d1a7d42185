// SPDX-License-Identifier: Apache-2.0
// Tells memory of an accelerator from host memory, so that a pointer to the former is refused
// instead of read.
#pragma once

namespace horo::runtime {

/// Looks whether this process has loaded CUDA. A look takes about a microsecond, so it is made when
/// tensors are declared. Thread: any.
void look_for_accelerators();

/// `pointer` is memory that only an accelerator can read. False where no library knows it, and
/// where CUDA was loaded after the last look. Thread: any.
bool is_device_memory(const void* pointer);

}  // namespace horo::runtime
