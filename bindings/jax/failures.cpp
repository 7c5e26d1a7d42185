// SPDX-License-Identifier: Apache-2.0
#include "bindings/jax/failures.hpp"

#include <utility>

#include "bindings/error_fields.hpp"

namespace horo::jax {

void Failures::note(horo_status status) {
  const std::string message = horo_last_error();
  auto fields = bindings::error_fields(status, message);
  const MutexLock lock(mutex_);
  ++last_.count;
  last_.status = status;
  last_.fields = std::move(fields);
}

Failures::Last Failures::last() {
  const MutexLock lock(mutex_);
  return last_;
}

Failures& failures() {
  static auto* const one = new Failures();
  return *one;
}

}  // namespace horo::jax
