// SPDX-License-Identifier: Apache-2.0
// Calls of CUDA's driver that need a context.
#pragma once

#include "runtime/device/driver/cuda_driver.hpp"

namespace horo::runtime::cuda {

/// While it lives, the calling thread may ask for memory and look at events although the program
/// captures a graph, in this thread or in another one. Such a call fails otherwise, and ends the
/// capture.
class BesideCapture {
 public:
  explicit BesideCapture(const Driver& driver) : exchange_(driver.exchange_capture_mode) {
    exchange();
  }

  ~BesideCapture() { exchange(); }

  BesideCapture(const BesideCapture&) = delete;
  BesideCapture& operator=(const BesideCapture&) = delete;

 private:
  void exchange() {
    if (exchange_ != nullptr) static_cast<void>(exchange_(&mode_));
  }

  Code (*const exchange_)(int* mode);
  int mode_ = kRelaxedCapture;  ///< Then the mode to go back to.
};

/// Makes a context the calling thread's while it lives: most calls of the driver need one.
class Current {
 public:
  Current(const Driver& driver, Context context)
      : beside_(driver), driver_(driver), code_(driver.push_context(context)) {}

  ~Current() {
    Context own = nullptr;
    if (code_ == kSuccess) static_cast<void>(driver_.pop_context(&own));
  }

  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  Code code() const { return code_; }

 private:
  const BesideCapture beside_;
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
