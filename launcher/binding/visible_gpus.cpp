// SPDX-License-Identifier: Apache-2.0
#include "launcher/binding/visible_gpus.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "discovery/gpu_places.hpp"
#include "discovery/gpus.hpp"
#include "discovery/nvml/nvml_places.hpp"
#include "discovery/text_file.hpp"

namespace horo::launcher {

namespace {

using discovery::GpuPlace;
using Places = std::vector<GpuPlace>;

constexpr const char* kHip = "HIP_VISIBLE_DEVICES";

std::vector<VisibleGpu> named(const std::string& list) {
  std::vector<VisibleGpu> gpus;
  for (const auto id : discovery::words(list, ","))
    gpus.push_back({.id = std::string(id), .cpus = {}});
  return gpus;
}

std::vector<VisibleGpu> numbered(std::size_t count) {
  std::vector<VisibleGpu> gpus;
  for (std::size_t i = 0; i < count; ++i) gpus.push_back({.id = std::to_string(i), .cpus = {}});
  return gpus;
}

/// Whether the GPUs are AMD's: their variables, or only their devices, are there.
bool are_amd(const VisibleGpus& visible, const std::string& root) {
  return visible.variable == kHip ||
         (discovery::nvidia_gpus(root).empty() && !discovery::amd_gpu_places(root).empty());
}

/// The name of a GPU among all of the host: HIP's numbers count in ROCm's list.
std::string_view name_on_host(const VisibleGpus& visible, const VisibleGpu& gpu) {
  std::size_t index = 0;
  const auto* const end = gpu.id.data() + gpu.id.size();
  const auto read = std::from_chars(gpu.id.data(), end, index);
  if (visible.rocr.empty() || read.ec != std::errc{} || read.ptr != end) return gpu.id;
  return index < visible.rocr.size() ? std::string_view(visible.rocr[index]) : std::string_view();
}

bool locate_in(const Places& places, std::string_view name, VisibleGpu& gpu) {
  const auto* const place = discovery::find_gpu(places, name);
  if (place != nullptr) gpu.cpus = place->cpus;
  return !gpu.cpus.empty();
}

Failure not_located(const VisibleGpus& visible, const VisibleGpu& gpu, std::string_view name,
                    const Result<Places>& places) {
  constexpr std::string_view kRemedy = "--bind-to numa, core or none does not need to know";
  if (!places) {
    return fail(Errc::unsupported, "--bind-to gpu: it is not known where GPU {} is: {}; {}", gpu.id,
                places.error().message, kRemedy);
  }
  if (discovery::find_gpu(*places, name) != nullptr) {
    return fail(Errc::unsupported,
                "--bind-to gpu: the driver does not tell which cores are near GPU {}; {}", gpu.id,
                kRemedy);
  }
  return fail(Errc::not_found,
              "--bind-to gpu: {} names '{}', which is none of the {} GPUs of this host; horo "
              "discover lists them",
              visible.variable, gpu.id, places->size());
}

}  // namespace

VisibleGpus visible_gpus(const GpuVariables& variables, AskDriver ask, const std::string& root) {
  VisibleGpus visible;
  if (variables.rocr) {
    for (const auto id : discovery::words(*variables.rocr, ",")) visible.rocr.emplace_back(id);
  }
  if (variables.cuda) {
    visible.gpus = named(*variables.cuda);
  } else if (variables.hip || variables.rocr) {
    visible.variable = kHip;
    visible.gpus = variables.hip ? named(*variables.hip) : numbered(visible.rocr.size());
  } else if (auto count = discovery::nvidia_gpus(root).size(); count != 0) {
    visible.by_bus = true;
    visible.gpus = numbered(count);
  } else if (count = discovery::amd_gpu_places(root).size(); count != 0) {
    visible.variable = kHip;
    visible.gpus = numbered(count);
  } else if (ask == AskDriver::yes) {
    // A driver without files here may still have a library.
    const auto places = discovery::nvml_gpu_places();
    visible.by_bus = true;
    visible.gpus = numbered(places ? places->size() : 0);
  }
  return visible;
}

std::size_t gpu_of(int local_rank, int ranks, std::size_t gpus) {
  const auto rank = static_cast<std::size_t>(local_rank);
  const auto all = static_cast<std::size_t>(ranks);
  return all <= gpus ? rank : rank * gpus / all;
}

Status locate(VisibleGpus& visible, int ranks, const std::string& root) {
  const bool amd = are_amd(visible, root);
  const auto by_files = amd ? discovery::amd_gpu_places(root) : discovery::nvidia_gpu_places(root);
  std::optional<Result<Places>> last;
  for (int rank = 0; rank < ranks && !visible.gpus.empty(); ++rank) {
    auto& gpu = visible.gpus[gpu_of(rank, ranks, visible.gpus.size())];
    const auto name = name_on_host(visible, gpu);
    if (!gpu.cpus.empty() || locate_in(by_files, name, gpu)) continue;
    if (!last) last = amd ? Result<Places>(by_files) : discovery::nvml_gpu_places();
    if (!*last || !locate_in(**last, name, gpu)) return not_located(visible, gpu, name, *last);
  }
  return {};
}

}  // namespace horo::launcher
