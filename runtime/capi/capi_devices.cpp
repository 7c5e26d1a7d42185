// SPDX-License-Identifier: Apache-2.0
// The C ABI of tensors in device memory.
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/backends/device/by_hosts_path.hpp"
#include "runtime/backends/ipc/ipc_backend.hpp"
#include "runtime/backends/ipc/ipc_path.hpp"
#include "runtime/backends/nccl/nccl_backend.hpp"
#include "runtime/backends/nccl/nccl_library.hpp"
#include "runtime/backends/nccl/nccl_path.hpp"
#include "runtime/capi/capi_support.hpp"
#include "runtime/device/driver/driver_check.hpp"
#include "runtime/device/driver/driver_device.hpp"
#include "runtime/device/library_in_use.hpp"

namespace horo::runtime::capi {

namespace {

/// Only horo_init writes them, and no tensor is in device memory before.
DeviceRules& rules() {
  static auto* const rules = new DeviceRules{.driver = cuda::kAutomatic, .nccl = {}};
  return *rules;
}

/// The library that goes with these devices.
const nccl::Brand& brand_of(const cuda::DeviceApi& api) {
  return &api == &cuda::kHip ? nccl::kRccl : nccl::kNccl;
}

/// The library that goes with the devices of this process.
const nccl::Brand& brand() {
  const auto* const driver = cuda::loaded_driver();
  return brand_of(driver == nullptr ? cuda::kCuda : *driver->api);
}

/// The file that a knob names, or else a library of this process whose name begins so. Empty: there
/// is none.
std::string file_of(const std::string& named, std::string_view prefix) {
  if (!named.empty() && named != cuda::kAutomatic) return named;
  return loaded_library(prefix);
}

/// The file of horo_device_library; empty: there is none.
std::string library_of(std::string_view what) {
  const auto rules = read_device_rules();
  if (!rules) return {};
  if (what == "cuda") return file_of(rules->driver, cuda::kCuda.prefix);
  if (what == "rocm") return file_of(rules->driver, cuda::kHip.prefix);
  if (what != "nccl") return {};
  // A framework has loaded one of the two at most.
  auto file = file_of(rules->nccl, nccl::kNccl.prefix);
  return file.empty() ? file_of(rules->nccl, nccl::kRccl.prefix) : file;
}

/// Whether NCCL may move tensors of this process's devices. Fails: unavailable, unsupported.
Status check_nccl(const DeviceRules& rules, const nccl::Brand& brand) {
  if (rules.wanted != GpuOperations::automatic && rules.wanted != GpuOperations::nccl) {
    return fail(Errc::unsupported,
                "HORO_GPU_OPERATIONS names another way than nccl; set it to auto or nccl");
  }
  HORO_TRY([[maybe_unused]] const auto* library, nccl::load(rules.nccl, brand));
  return {};
}

/// Whether devices are reached by this library. Fails: unavailable.
Status check_api(const cuda::DeviceApi& api, const DeviceRules& rules) {
  const bool open = cuda::loaded_driver() == nullptr && rules.driver == cuda::kAutomatic;
  if (const auto signs = cuda::look_at_host(); open && &cuda::choose_api(signs) != &api)
    return fail(Errc::unavailable, "{}", cuda::why_not_chosen(api, signs));
  HORO_TRY(const auto* const used, cuda::check_driver(rules.driver));
  if (used == &api) return {};
  return fail(Errc::unavailable, "this process uses {}, not {}", used->library, api.library);
}

Status check_support(std::string_view what) {
  if (what != "cuda" && what != "nccl" && what != "rocm")
    return fail(Errc::invalid_argument, "'{}' is not one of cuda, nccl, rocm", what);
  HORO_TRY(const auto rules, read_device_rules());
  if (what == "rocm") return check_api(cuda::kHip, rules);
  if (what == "cuda") return check_api(cuda::kCuda, rules);
  HORO_TRY(const auto* const api, cuda::check_driver(rules.driver));
  return check_nccl(rules, brand_of(*api));
}

}  // namespace

Devices& devices() {
  // Never destroyed, because the driver ends before the destructors of this library run.
  static auto* const all = new Devices(
      []() -> Status {
        HORO_TRY([[maybe_unused]] const auto* driver, cuda::load_driver(rules().driver));
        return {};
      },
      [](int index) -> Result<std::unique_ptr<Device>> {
        HORO_TRY(const auto* const driver, cuda::load_driver(rules().driver));
        return open_driver_device(*driver, index);
      });
  return *all;
}

const DeviceRules& set_device_rules(DeviceRules given) {
  return rules() = std::move(given);
}

namespace {

bool nccl_moves(const Signature& like) {
  return NcclBackend::takes(like, false);
}

/// Why this rank may not use that library among the devices of its host; empty: it may.
std::string why_not_by_hosts(const DeviceRules& rules, GpuOperations inner) {
  if (rules.wanted == GpuOperations::automatic || rules.wanted == inner) {
    const bool named = rules.wanted != GpuOperations::automatic;
    return named && rules.by_hosts == ByHostsUse::fallback
               ? "gpu.operations names a way between all ranks, and hierarchical.allreduce is not "
                 "set"
               : "";
  }
  return "gpu.operations names another way";
}

void add_by_hosts(const DeviceRules& rules, int streams, const SetPlace& place,
                  std::vector<std::unique_ptr<DevicePath>>& paths) {
  const auto own = by_hosts_place(place);
  if (!own) return;  // Nor does the set itself connect.
  paths.push_back(std::make_unique<ByHostsPath>(
      ByHostsPath::Parts{.name = "nccl by hosts",
                         .inner = std::make_unique<NcclPath>(rules.nccl, brand(), streams),
                         .moves = &nccl_moves,
                         .why_not = why_not_by_hosts(rules, GpuOperations::nccl),
                         .use = rules.by_hosts},
      *own));
  paths.push_back(std::make_unique<ByHostsPath>(
      ByHostsPath::Parts{.name = "ipc by hosts",
                         .inner = make_ipc_path(),
                         .moves = &ipc_moves,
                         .why_not = why_not_by_hosts(rules, GpuOperations::ipc),
                         .use = rules.by_hosts},
      *own));
}

}  // namespace

DevicePaths device_paths(const DeviceRules& rules, int streams) {
  return [rules, streams](const SetPlace& place) {
    std::vector<std::unique_ptr<DevicePath>> paths;
    paths.push_back(make_ipc_path());
    paths.push_back(std::make_unique<NcclPath>(rules.nccl, brand(), streams));
    if (place.spans_hosts()) add_by_hosts(rules, streams, place, paths);
    return paths;
  };
}

Status check_memory(horo_memory memory) {
  if (memory == HORO_MEMORY_HOST || memory == HORO_MEMORY_DEVICE) return {};
  return fail(Errc::invalid_argument, "memory {} is not HORO_MEMORY_HOST or HORO_MEMORY_DEVICE",
              static_cast<int>(memory));
}

Status set_memory(const horo_tensor_desc& desc, Signature& signature) {
  HORO_TRY_STATUS(check_memory(desc.memory));
  signature.memory = static_cast<MemoryKind>(desc.memory);
  return desc.memory == HORO_MEMORY_DEVICE ? devices().load() : Status();
}

void put(Session& session, Operation& operation) {
  auto& use = operation.on_device;
  if (use.result != nullptr && use.reader) {
    // The next user of the memory waits for what the reader has put on its stream.
    if (auto event = use.gpu->event(); event && use.gpu->device().record(event->get(), *use.reader))
      use.result->note_use(std::move(*event));
  }
  session.operations().put(operation);
}

namespace {

/// Work on `stream` comes behind the operation, also behind what a device still does for one that
/// has failed. Fails: with the operation's error, if it has ended; io.
Status order(Operation& operation, StreamHandle stream) {
  auto& use = operation.on_device;
  use.reader = stream;
  const bool failed = operation.done() && operation.status() != Errc::ok;
  const auto& last = failed ? use.abandoned : use.finished;
  Status waits;
  if (last != nullptr) waits = use.gpu->device().wait(stream, last.get());
  if (failed) return Failure(operation.error());
  if (!waits) return Failure(use.gpu->named(waits.error()));
  return {};
}

/// How far operations are when horo_wait_stream returns.
Until until() {
  return rules().waits_by_stream ? Until::launched : Until::done;
}

}  // namespace

}  // namespace horo::runtime::capi

using horo::Deadline;
using horo::Status;
using horo::runtime::Operation;
using horo::runtime::Session;
using horo::runtime::capi::guarded;
using horo::runtime::capi::report;
using horo::runtime::capi::with_session;

extern "C" {

HORO_API horo_status horo_device_support(const char* what) {
  return guarded(
      [what] { return report(horo::runtime::capi::check_support(what == nullptr ? "" : what)); });
}

HORO_API const char* horo_device_library(const char* what) {
  thread_local std::string file;
  file = horo::runtime::capi::library_of(what == nullptr ? "" : what);
  return file.empty() ? nullptr : file.c_str();
}

HORO_API horo_status horo_wait_stream(const horo_op* ops, size_t n, void* stream,
                                      int64_t timeout_ms) {
  return with_session([&](Session& session) {
    const auto operations = horo::runtime::capi::find_all(session, ops, n);
    if (!operations) return report(operations.error());
    if (!session.wait(*operations, horo::runtime::capi::deadline_in(timeout_ms),
                      horo::runtime::capi::until()))
      return HORO_IN_PROGRESS;
    Status first;
    for (auto* const operation : *operations) {
      auto status = horo::runtime::capi::order(*operation, stream);
      if (first && !status) first = std::move(status);
    }
    return report(first);
  });
}

}  // extern "C"
