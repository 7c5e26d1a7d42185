// SPDX-License-Identifier: Apache-2.0
// What the functions of the C ABI share: the process's session, and how an error becomes a status.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "base/result.hpp"
#include "horo/horo.h"
#include "runtime/arenas.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/session.hpp"

namespace horo::runtime::capi {

/// The process's one session. It outlives horo_shutdown until the next horo_init, so that what is
/// in the hands of other threads stays valid.
struct Process {
  std::mutex life;                 ///< horo_init and horo_shutdown.
  bootstrap::Bootstrap bootstrap;  // HORO_GUARDED_BY(life)
  std::unique_ptr<Session> owner;  // HORO_GUARDED_BY(life)
  Arenas arenas;
  std::atomic<Session*> session{nullptr};
  std::atomic<bool> joined{false};
  std::atomic<bool> forked{false};
  std::atomic<std::uint64_t> unnamed{0};
};

Process& process();

/// What the knobs in the environment ask for. Fails: invalid_argument, naming the knob.
Result<SessionOptions> read_options();

extern thread_local std::string last_error;

/// Keeps the message for horo_last_error.
horo_status report(const Error& error);
horo_status report(Failure failure);
horo_status report(const Status& status);

/// Runs `body`, session or not; memory that cannot be had becomes an error.
template <typename Body>
horo_status guarded(Body body) {
  if (process().forked.load(std::memory_order_relaxed)) {
    return report(fail(Errc::forked,
                       "this process was forked from the one that called horo_init; start it "
                       "afresh (spawn) to use horo"));
  }
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return report(fail(Errc::out_of_memory, "no memory for the call"));
  }
}

/// The same, with the session.
template <typename Body>
horo_status with_session(Body body) {
  return guarded([&body] {
    Session* const session = process().session.load(std::memory_order_acquire);
    if (session == nullptr)
      return report(fail(Errc::not_initialized, "horo_init has not been called"));
    return body(*session);
  });
}

}  // namespace horo::runtime::capi
