// SPDX-License-Identifier: Apache-2.0
// Shared by the functions of the C ABI: the process's session, and the conversion of errors to
// statuses.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "base/mutex.hpp"
#include "base/result.hpp"
#include "horo/horo.h"
#include "runtime/backends/device/by_hosts_path.hpp"
#include "runtime/backends/device_path.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/device/open_device.hpp"
#include "runtime/host/arenas.hpp"
#include "runtime/session/session.hpp"

namespace horo::runtime::capi {

/// The process's one session. It outlives horo_shutdown until the next horo_init, so that objects
/// that other threads still use stay valid.
struct Process {
  Mutex life;  ///< horo_init and horo_shutdown.
  bootstrap::Bootstrap bootstrap HORO_GUARDED_BY(life);
  std::unique_ptr<Session> owner HORO_GUARDED_BY(life);
  Arenas arenas;
  std::atomic<Session*> session{nullptr};
  std::atomic<bool> joined{false};
  std::atomic<bool> forked{false};
  std::atomic<bool> entering{false};  ///< A thread waits for the other ranks, and holds `life`.
  std::atomic<std::uint64_t> unnamed{0};
  std::atomic<std::uint32_t> sessions{0};  ///< Earlier sessions of this process.
  WireRule wire;  ///< Written by horo_init, before it publishes the session.
};

Process& process();

/// Whether a launcher has started this process as a worker of an elastic job.
bool is_elastic(const bootstrap::Lookup& lookup);

/// The file for the trace of a generation: "trace.json" becomes "trace.g2.json" in the second one,
/// so that no generation overwrites the trace of an earlier one. Pure.
std::string trace_of(const std::string& path, std::uint64_t generation);

/// The options that the knobs in the environment set. Fails: invalid_argument, naming the knob.
Result<SessionOptions> read_options();

/// The part of the options that depends on this rank's place on its host. Fails: as core_of.
Status read_place(SessionOptions& options, const WorkerIdentity& identity);

/// Logs which settings in the environment have no effect, unless the launcher has done so. Once per
/// process; for rank 0 only.
void warn_of_settings();

/// The type in which a reduction's elements travel between hosts: what `desc` asks for, or else
/// what the rule says. Fails: invalid_argument (a value that is not known).
Status set_wire(const horo_tensor_desc& desc, const WireRule& rule, Signature& signature);

/// The devices of this process. They live until it ends.
Devices& devices();

/// The knobs for tensors in device memory.
struct DeviceRules {
  std::string driver;  ///< The file of CUDA's driver or HIP's runtime.
  std::string nccl;    ///< The file of NCCL or RCCL.
  GpuOperations wanted = GpuOperations::automatic;
  ByHostsUse by_hosts = ByHostsUse::fallback;
  bool waits_by_stream = true;  ///< horo_wait_stream returns before operations are complete.
};

/// Fails: invalid_argument, naming the knob.
Result<DeviceRules> read_device_rules();

/// The rules of this process. Before horo_init returns.
const DeviceRules& set_device_rules(DeviceRules rules);

/// Makes the ways between devices, the best first. `streams`: those of NCCL.
DevicePaths device_paths(const DeviceRules& rules, int streams);

/// Fails: invalid_argument (a value that is not known).
Status check_memory(horo_memory memory);

/// Where the tensor is; loads the driver for device memory. Fails: invalid_argument, unavailable.
Status set_memory(const horo_tensor_desc& desc, Signature& signature);

/// Fails: not_found (released, or never there).
Result<Operation*> find(Session& session, horo_op op);
Result<std::vector<Operation*>> find_all(Session& session, const horo_op* ops, size_t n);

/// Less than 0: never.
Deadline deadline_in(int64_t timeout_ms);

/// Ends the use of an operation. Its result may still be used by work on the stream that has waited
/// for it.
void put(Session& session, Operation& operation);

/// The calling thread's last failure, for horo_last_error and horo_last_error_detail.
extern thread_local Error last_error;

/// Keeps the error as the thread's last failure and returns its status.
horo_status report(const Error& error);
horo_status report(Failure failure);
horo_status report(const Status& status);

/// Runs `body`, whether or not there is a session. A failed allocation becomes an error, and so
/// does a thread that cannot be started.
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
  } catch (const std::system_error& error) {
    return report(fail(Errc::resource_exhausted,
                       "a thread cannot be started: {}; raise the limit of processes, which is "
                       "`ulimit -u` for a user and pids.max for a control group or container",
                       error.code().message()));
  }
}

/// Runs `body` with the session. Fails: not_initialized.
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
