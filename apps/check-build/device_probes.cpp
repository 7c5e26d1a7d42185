// SPDX-License-Identifier: Apache-2.0
#include "apps/check-build/device_probes.hpp"

#include <algorithm>
#include <dlfcn.h>
#include <unistd.h>

#include <fmt/format.h>

#include "discovery/amd_gpus.hpp"
#include "discovery/nvml/gpu_list.hpp"

namespace horo::apps {

namespace {

constexpr int kOldestCuda = 11040;

/// A function of the library; null: it has none of that name.
template <typename Function>
Function* function_of(const std::string& library, const char* name) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  return handle == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle, name));
}

/// The library itself says whether tensors in device memory move by `what` here. The row's detail
/// is the reason if they do not, and else empty.
Finding ask_library(const char* what, const std::string& library) {
  Finding finding{.section = "Backends", .name = what, .available = false, .detail = {}};
  auto* const support = function_of<int(const char*)>(library, "horo_device_support");
  auto* const last_error = function_of<const char*()>(library, "horo_last_error");
  if (support == nullptr || last_error == nullptr) {
    finding.detail = fmt::format("'{}' cannot be asked", library);
    return finding;
  }
  finding.available = support(what) == 0;
  if (!finding.available) finding.detail = last_error();
  return finding;
}

/// ", by FILE": the file of `what` that a setting names or that libhoro has loaded.
std::string by_file(const char* what, const std::string& library) {
  auto* const file_of = function_of<const char*(const char*)>(library, "horo_device_library");
  const char* const file = file_of == nullptr ? nullptr : file_of(what);
  return file == nullptr ? "" : fmt::format(", by {}", file);
}

}  // namespace

Finding probe_cuda(const std::string& library) {
  auto finding = ask_library("cuda", library);
  if (finding.available) {
    finding.detail =
        "PyTorch's and C programs' tensors stay in GPU memory" + by_file("cuda", library);
  }
  return finding;
}

Finding probe_rocm(const std::string& library) {
  auto finding = ask_library("rocm", library);
  if (finding.available) {
    finding.detail = "PyTorch's and C programs' tensors stay in the memory of AMD's GPUs" +
                     by_file("rocm", library);
  }
  return finding;
}

Finding probe_nccl(const std::string& library) {
  auto finding = ask_library("nccl", library);
  if (!finding.available) return finding;
  const bool rccl = ask_library("rocm", library).available;
  finding.detail =
      fmt::format("{} between GPUs{}", rccl ? "RCCL" : "NCCL", by_file("nccl", library));
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
