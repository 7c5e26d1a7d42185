// SPDX-License-Identifier: Apache-2.0
#include "runtime/capi/capi_support.hpp"

namespace horo::runtime::capi {

// Never destroyed: exit handlers and other threads may still call the library.
Process& process() {
  static auto* const instance = new Process;
  return *instance;
}

thread_local Error last_error;

horo_status report(const Error& error) {
  last_error = error;
  return static_cast<horo_status>(error.code);
}

horo_status report(Failure failure) {
  return report(std::move(failure).take());
}

horo_status report(const Status& status) {
  return status ? HORO_OK : report(status.error());
}

}  // namespace horo::runtime::capi
