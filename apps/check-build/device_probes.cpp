// SPDX-License-Identifier: Apache-2.0
#include "apps/check-build/device_probes.hpp"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

#include "discovery/amd_gpus.hpp"
#include "discovery/nvml/gpu_list.hpp"
#include "runtime/device/library_in_use.hpp"

namespace horo::apps {

namespace {

constexpr int kOldestCuda = 11040;
constexpr std::string_view kCudaFiles = "libcuda.so";
constexpr std::string_view kHipFiles = "libamdhip64.so";
constexpr std::string_view kNcclFiles = "libnccl.so";
constexpr std::string_view kRcclFiles = "librccl.so";

/// The library itself says whether tensors in device memory move by `what` here. The row's detail
/// is the reason if they do not, and else empty.
Finding ask_library(const char* what, const std::string& library) {
  Finding finding{.section = "Backends", .name = what, .available = false, .detail = {}};
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  using Support = int (*)(const char*);
  using LastError = const char* (*)();
  auto* const support =
      handle == nullptr ? nullptr : reinterpret_cast<Support>(dlsym(handle, "horo_device_support"));
  auto* const last_error =
      handle == nullptr ? nullptr : reinterpret_cast<LastError>(dlsym(handle, "horo_last_error"));
  if (support == nullptr || last_error == nullptr) {
    finding.detail = fmt::format("'{}' cannot be asked", library);
    return finding;
  }
  finding.available = support(what) == 0;
  if (!finding.available) finding.detail = last_error();
  return finding;
}

/// ", by FILE": the file that libhoro has loaded, which `variable` names or which begins so.
std::string by_file(const char* variable, std::string_view prefix) {
  const char* const named = std::getenv(variable);
  const bool given = named != nullptr && *named != '\0' && std::string_view(named) != "auto";
  const auto file = given ? named : runtime::loaded_library(prefix);
  return file.empty() ? "" : ", by " + file;
}

}  // namespace

Finding probe_cuda(const std::string& library) {
  auto finding = ask_library("cuda", library);
  if (finding.available) {
    finding.detail = "PyTorch's and C programs' tensors stay in GPU memory" +
                     by_file("HORO_GPU_DRIVER", kCudaFiles);
  }
  return finding;
}

Finding probe_rocm(const std::string& library) {
  auto finding = ask_library("rocm", library);
  if (finding.available) {
    finding.detail = "PyTorch's and C programs' tensors stay in the memory of AMD's GPUs" +
                     by_file("HORO_GPU_DRIVER", kHipFiles);
  }
  return finding;
}

Finding probe_nccl(const std::string& library) {
  auto finding = ask_library("nccl", library);
  if (!finding.available) return finding;
  const bool rccl = ask_library("rocm", library).available;
  finding.detail = fmt::format("{} between GPUs{}", rccl ? "RCCL" : "NCCL",
                               by_file("HORO_GPU_NCCL", rccl ? kRcclFiles : kNcclFiles));
  return finding;
}

Finding probe_nvidia_driver() {
  Finding finding{.section = "GPUs", .name = "driver", .available = false, .detail = {}};
  const auto list = discovery::list_gpus();
  if (!list) {
    finding.detail = list.error().message;
    return finding;
  }
  const auto& gpus = list->gpus;
  const auto usable =
      std::count_if(gpus.begin(), gpus.end(), [](const auto& gpu) { return gpu.problem.empty(); });
  finding.available = usable != 0 && list->cuda >= kOldestCuda;
  finding.detail = fmt::format("NVIDIA {}, for CUDA up to {}, with {} GPUs", list->driver,
                               discovery::cuda_version_text(list->cuda), gpus.size());
  if (list->cuda < kOldestCuda) finding.detail += "; Horo needs a driver for CUDA 11.4 or later";
  for (const auto& gpu : gpus) {
    if (!gpu.problem.empty()) finding.detail += "; " + discovery::describe_problem(gpu);
  }
  return finding;
}

Finding probe_amd_driver() {
  const auto gpus = discovery::amd_gpus();
  Finding finding{
      .section = "GPUs", .name = "AMD driver", .available = !gpus.empty(), .detail = {}};
  if (gpus.empty()) {
    finding.detail =
        "there is no GPU of AMD that computes: the kernel's driver amdgpu lists none in "
        "/sys/class/kfd";
    return finding;
  }
  finding.detail = fmt::format("amdgpu, with {} GPUs", gpus.size());
  for (const auto& gpu : gpus) finding.detail += fmt::format("; {}: {}", gpu.index, gpu.name);
  if (access("/dev/kfd", R_OK | W_OK) != 0) {
    finding.available = false;
    finding.detail +=
        "; /dev/kfd cannot be opened: add the user to the group that owns it (render or video), or "
        "give the container the device";
  }
  return finding;
}

Finding probe_kernels(const char* name, const char* file, const char* compiler,
                      const std::string& library) {
  const auto path = fmt::format("{}/horo/{}", library.substr(0, library.rfind('/')), file);
  const bool there = access(path.c_str(), R_OK) == 0;
  return {.section = "GPUs",
          .name = name,
          .available = there,
          .detail =
              there ? path : fmt::format("there is no {}; build with {} in PATH", path, compiler)};
}

}  // namespace horo::apps
