// SPDX-License-Identifier: Apache-2.0
// The C ABI of submitted operations: waiting, results and callbacks.
#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "runtime/capi/capi_support.hpp"

using horo::Deadline;
using horo::Errc;
using horo::runtime::Operation;
using horo::runtime::Session;
using horo::runtime::capi::deadline_in;
using horo::runtime::capi::find;
using horo::runtime::capi::find_all;
using horo::runtime::capi::last_error;
using horo::runtime::capi::report;
using horo::runtime::capi::with_session;

namespace {

/// The status of a completed operation. Its error becomes this thread's last failure.
horo_status outcome(const Operation& operation) {
  if (operation.status() == Errc::ok) return HORO_OK;
  return report(operation.error());
}

horo_status wait_one(Session& session, horo_op op, const Deadline& deadline) {
  auto operation = find(session, op);
  if (!operation) return report(operation.error());
  if (!session.wait(**operation, deadline)) return HORO_IN_PROGRESS;
  const auto status = outcome(**operation);
  // A result belongs to the caller until horo_release.
  if (!(*operation)->keeps_result || status != HORO_OK)
    horo::runtime::capi::put(session, **operation);
  return status;
}

}  // namespace

extern "C" {

HORO_API horo_status horo_poll(horo_op op) {
  return with_session([&](Session& session) {
    auto operation = find(session, op);
    if (!operation) return report(operation.error());
    if (!(*operation)->done()) session.poke();
    return (*operation)->done() ? outcome(**operation) : HORO_IN_PROGRESS;
  });
}

HORO_API horo_status horo_wait(horo_op op, int64_t timeout_ms) {
  return with_session(
      [&](Session& session) { return wait_one(session, op, deadline_in(timeout_ms)); });
}

HORO_API horo_status horo_wait_all(const horo_op* ops, size_t n, int64_t timeout_ms) {
  return with_session([&](Session& session) {
    const auto deadline = deadline_in(timeout_ms);
    // Nothing is released before all are complete: after a timeout the caller can wait again.
    const auto operations = find_all(session, ops, n);
    if (!operations) return report(operations.error());
    if (!session.wait(*operations, deadline)) return HORO_IN_PROGRESS;
    horo_status first = HORO_OK;
    horo::Error first_error;
    for (size_t i = 0; i < n; ++i) {
      const auto status = wait_one(session, ops[i], deadline);
      if (first == HORO_OK && status != HORO_OK) {
        first = status;
        first_error = last_error;
      }
    }
    if (first != HORO_OK) last_error = std::move(first_error);
    return first;
  });
}

HORO_API horo_status horo_await(horo_op op, int64_t timeout_ms) {
  return with_session([&](Session& session) {
    auto operation = find(session, op);
    if (!operation) return report(operation.error());
    if (!session.wait(**operation, deadline_in(timeout_ms))) return HORO_IN_PROGRESS;
    return outcome(**operation);
  });
}

HORO_API horo_status horo_await_all(const horo_op* ops, size_t n, int64_t timeout_ms) {
  return with_session([&](Session& session) {
    const auto operations = find_all(session, ops, n);
    if (!operations) return report(operations.error());
    if (!session.wait(*operations, deadline_in(timeout_ms))) return HORO_IN_PROGRESS;
    const auto failed =
        std::ranges::find_if(*operations, [](auto* one) { return one->status() != Errc::ok; });
    return failed == operations->end() ? HORO_OK : outcome(**failed);
  });
}

HORO_API horo_status horo_result(horo_op op, const void** data, size_t* bytes, int64_t* rows) {
  return with_session([&](Session& session) {
    auto operation = find(session, op);
    if (!operation) return report(operation.error());
    const auto& o = **operation;
    if (!o.reached(horo::runtime::Until::launched)) {
      return report(
          horo::fail(Errc::in_progress, "operation {} has not completed; wait for it first", op));
    }
    if (o.done() && o.status() != Errc::ok) return outcome(o);
    if (!o.keeps_result) {
      return report(horo::fail(Errc::invalid_argument,
                               "operation {} has its result in the buffer it was given", op));
    }
    if (data != nullptr) *data = o.result;
    if (bytes != nullptr) *bytes = o.result_bytes;
    if (rows != nullptr) std::copy(o.rows.begin(), o.rows.end(), rows);
    return HORO_OK;
  });
}

HORO_API horo_status horo_release(horo_op op) {
  return with_session([&](Session& session) {
    auto operation = find(session, op);
    if (!operation) return report(operation.error());
    if (!(*operation)->done()) {
      return report(
          horo::fail(Errc::in_progress, "operation {} has not completed; wait for it first", op));
    }
    horo::runtime::capi::put(session, **operation);
    return HORO_OK;
  });
}

HORO_API horo_status horo_on_complete(horo_op op, horo_callback callback, void* user) {
  return with_session([&](Session& session) {
    if (callback == nullptr) return report(horo::fail(Errc::invalid_argument, "no callback"));
    auto operation = find(session, op);
    if (!operation) return report(operation.error());
    return report(session.on_complete(**operation, callback, user));
  });
}

}  // extern "C"
