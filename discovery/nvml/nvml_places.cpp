// SPDX-License-Identifier: Apache-2.0
#include "discovery/nvml/nvml_places.hpp"

#include "discovery/nvml/gpu_list.hpp"

namespace horo::discovery {

Result<std::vector<GpuPlace>> nvml_gpu_places() {
  HORO_TRY(auto list, list_gpus());
  std::vector<GpuPlace> places;
  for (auto& gpu : list.gpus) {
    places.push_back({.index = gpu.index,
                      .uuid = std::move(gpu.uuid),
                      .slices = std::move(gpu.slices),
                      .cpus = std::move(gpu.cpus)});
  }
  return places;
}

}  // namespace horo::discovery
