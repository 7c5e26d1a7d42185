// SPDX-License-Identifier: Apache-2.0
// The latest failure of libhoro inside a program. XLA passes only its text on.
#pragma once

#include <cstdint>
#include <string>

#include "base/mutex.hpp"
#include "horo/horo.h"

namespace horo::jax {

/// Thread: any.
class Failures {
 public:
  struct Last {
    std::uint64_t count = 0;  ///< Failures so far.
    horo_status status = HORO_OK;
    std::string fields;  ///< See bindings/error_fields.hpp.
  };

  /// Keeps the calling thread's last failure.
  void note(horo_status status);

  Last last();

 private:
  Mutex mutex_;
  Last last_ HORO_GUARDED_BY(mutex_);
};

/// Those of the process, which are never destroyed: XLA's threads may call until the process ends.
Failures& failures();

}  // namespace horo::jax
