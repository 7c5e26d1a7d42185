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

Result<Operation*> find(Session& session, horo_op op) {
  Operation* operation = session.operations().find(op);
  if (operation == nullptr)
    return fail(Errc::not_found, "operation {} does not exist or was released", op);
  return operation;
}

Deadline deadline_in(int64_t timeout_ms) {
  if (timeout_ms < 0) return Deadline::never();
  constexpr int64_t kYear = int64_t{365} * 24 * 3600 * 1000;
  return Deadline::in(SteadyClock::instance(),
                      std::chrono::milliseconds(std::min(timeout_ms, kYear)));
}

Result<std::vector<Operation*>> find_all(Session& session, const horo_op* ops, size_t n) {
  if (ops == nullptr && n != 0)
    return fail(Errc::invalid_argument, "the pointer to {} operations is null", n);
  std::vector<Operation*> operations;
  operations.reserve(n);
  for (size_t i = 0; i < n; ++i) {
    HORO_TRY(Operation* const operation, find(session, ops[i]));
    operations.push_back(operation);
  }
  return operations;
}

}  // namespace horo::runtime::capi
