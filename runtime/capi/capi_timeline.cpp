// SPDX-License-Identifier: Apache-2.0
// The C ABI of traces, which start and end while the job runs.
#include "base/mutex.hpp"
#include "runtime/capi/capi_support.hpp"
#include "runtime/engine/operations/recording.hpp"

using horo::Errc;
using horo::MutexLock;
using horo::runtime::Session;
using horo::runtime::capi::process;
using horo::runtime::capi::report;
using horo::runtime::capi::with_session;

extern "C" {

HORO_API horo_status horo_start_timeline(const char* path, int mark_cycles) {
  return with_session([&](Session&) {
    if (path == nullptr || *path == '\0')
      return report(horo::fail(Errc::invalid_argument, "horo_start_timeline: no path"));
    const MutexLock lock(process().life);
    return report(horo::runtime::start_trace(path, mark_cycles != 0));
  });
}

HORO_API horo_status horo_stop_timeline(void) {
  return with_session([&](Session&) {
    const MutexLock lock(process().life);
    horo::runtime::stop_trace();
    return HORO_OK;
  });
}

}  // extern "C"
