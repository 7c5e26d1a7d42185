// SPDX-License-Identifier: Apache-2.0
// Reads of plain fields in shared memory, which any process of the host may change at any time.
#pragma once

#include <atomic>
#include <cstring>

namespace horo::runtime {

/// One read. Without it the compiler may read the field again after the caller has checked it.
template <typename T>
T read_once(const T& shared) {
  return std::atomic_ref<T>(const_cast<T&>(shared)).load(std::memory_order_relaxed);
}

/// A copy of something larger that is not read again.
template <typename T>
T copy_once(const T& shared) {
  T copy;
  std::memcpy(static_cast<void*>(&copy), &shared, sizeof copy);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return copy;
}

}  // namespace horo::runtime
