// SPDX-License-Identifier: Apache-2.0
#include "discovery/nvml/nvml_library.hpp"

#include <cstdlib>
#include <dlfcn.h>

namespace horo::discovery::nvml {

namespace {

constexpr Code kDriverNotLoaded = 9;
constexpr Code kOtherVersion = 18;

Status start(const NvmlFunctions& library) {
  const auto code = library.init();
  if (code == kDriverNotLoaded) {
    return fail(Errc::unavailable,
                "NVIDIA's driver is installed but not running; load the kernel module 'nvidia'");
  }
  if (code == kOtherVersion) {
    return fail(Errc::unavailable,
                "NVIDIA's driver was updated and its kernel module was not; restart the host, or "
                "load the module again");
  }
  return library.status(code, "nvmlInit");
}

template <typename Function>
bool find(void* handle, Function& function, const char* symbol) {
  function = reinterpret_cast<Function>(dlsym(handle, symbol));
  return function != nullptr;
}

/// The text lists the functions that the library lacks.
std::string find_needed(void* handle, NvmlFunctions& library) {
  std::string missing;
  const auto need = [&](auto& function, const char* symbol) {
    if (!find(handle, function, symbol))
      missing += missing.empty() ? symbol : fmt::format(", {}", symbol);
  };
  need(library.init, "nvmlInit_v2");
  need(library.shut_down, "nvmlShutdown");
  need(library.error_text, "nvmlErrorString");
  need(library.driver_version, "nvmlSystemGetDriverVersion");
  need(library.cuda_version, "nvmlSystemGetCudaDriverVersion");
  need(library.count, "nvmlDeviceGetCount_v2");
  need(library.device, "nvmlDeviceGetHandleByIndex_v2");
  need(library.name, "nvmlDeviceGetName");
  need(library.uuid, "nvmlDeviceGetUUID");
  need(library.pci, "nvmlDeviceGetPciInfo_v3");
  need(library.memory, "nvmlDeviceGetMemoryInfo");
  return missing;
}

void find_others(void* handle, NvmlFunctions& library) {
  find(handle, library.use, "nvmlDeviceGetUtilizationRates");
  find(handle, library.cpu_affinity, "nvmlDeviceGetCpuAffinity");
  find(handle, library.temperature, "nvmlDeviceGetTemperature");
  // Both versions have the same arguments.
  if (!find(handle, library.processes, "nvmlDeviceGetComputeRunningProcesses_v3"))
    find(handle, library.processes, "nvmlDeviceGetComputeRunningProcesses_v2");
  find(handle, library.mig_mode, "nvmlDeviceGetMigMode");
  find(handle, library.mig_count, "nvmlDeviceGetMaxMigDeviceCount");
  find(handle, library.mig_device, "nvmlDeviceGetMigDeviceHandleByIndex");
  find(handle, library.link_state, "nvmlDeviceGetNvLinkState");
  find(handle, library.link_peer, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  find(handle, library.ecc_errors, "nvmlDeviceGetTotalEccErrors");
  find(handle, library.make_events, "nvmlEventSetCreate");
  find(handle, library.watch, "nvmlDeviceRegisterEvents");
  find(handle, library.await, "nvmlEventSetWait_v2");
  find(handle, library.free_events, "nvmlEventSetFree");
}

Result<NvmlFunctions> find_functions() {
  const auto file = library_file();
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return fail(Errc::unavailable,
                "there is no {}; it comes with NVIDIA's driver, on machines with a GPU", file);
  }
  NvmlFunctions library{};
  if (const auto missing = find_needed(handle, library); !missing.empty()) {
    return fail(Errc::unavailable, "{} has no {}; install a driver of 2018 or later", file,
                missing);
  }
  find_others(handle, library);
  HORO_TRY_STATUS(start(library));
  return library;
}

}  // namespace

Status NvmlFunctions::status(Code code, const char* call) const {
  if (code == kSuccess) return {};
  return fail(Errc::unavailable, "{}: {}", call, error_text(code));
}

std::string library_file() {
  const char* const named = std::getenv("HORO_NVML_LIBRARY");
  return named == nullptr ? "libnvidia-ml.so.1" : named;
}

Result<const NvmlFunctions*> load() {
  static const auto library = find_functions();
  if (!library) return Failure(library.error());
  return &*library;
}

}  // namespace horo::discovery::nvml
