// SPDX-License-Identifier: Apache-2.0
// Calls of CUDA's driver that need a context.
#pragma once

#include "runtime/device/driver/cuda_driver.hpp"

namespace horo::runtime::cuda {

/// Makes a context the calling thread's while it lives: most calls of the driver need one.
class Current {
 public:
  Current(const Driver& driver, Context context)
      : driver_(driver), code_(driver.push_context(context)) {}

  ~Current() {
    Context own = nullptr;
    if (code_ == kSuccess) static_cast<void>(driver_.pop_context(&own));
  }

  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  Code code() const { return code_; }

 private:
  const Driver& driver_;
  const Code code_;
};

/// Runs `body` in the context. Fails: as the driver does, with `name`.
template <typename Body>
Status call_in(const Driver& driver, Context context, std::string_view name, Body body) {
  const Current current(driver, context);
  HORO_TRY_STATUS(driver.status(current.code(), driver.names().push_context));
  return driver.status(body(), name);
}

}  // namespace horo::runtime::cuda
