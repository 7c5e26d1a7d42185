// SPDX-License-Identifier: Apache-2.0
// The C ABI's traces, begun and ended while the job runs.
#include "runtime/capi_support.hpp"
#include "runtime/recording.hpp"

using horo::Errc;
using horo::runtime::Session;
using horo::runtime::capi::process;
using horo::runtime::capi::report;
using horo::runtime::capi::with_session;

extern "C" {

HORO_API horo_status horo_start_timeline(const char* path, int mark_cycles) {
  return with_session([&](Session&) {
    if (path == nullptr || *path == '\0')
      return report(horo::fail(Errc::invalid_argument, "horo_start_timeline: no path"));
    const std::lock_guard lock(process().life);
    return report(horo::runtime::start_trace(path, mark_cycles != 0));
  });
}

HORO_API horo_status horo_stop_timeline(void) {
  return with_session([&](Session&) {
    const std::lock_guard lock(process().life);
    horo::runtime::stop_trace();
    return HORO_OK;
  });
}

}  // extern "C"
