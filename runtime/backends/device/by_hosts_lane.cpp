// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/device/by_hosts_lane.hpp"

#include <utility>

namespace horo::runtime {

ByHostsLane::ByHostsLane(OpenDevice& gpu, ByHostsPlace place, StreamHandle packing)
    : gpu_(gpu), place_(std::move(place)), packing_(packing) {
  for (auto& sum : sums_) sum.emplace(place_);
}

ByHostsLane::~ByHostsLane() {
  gpu_.device().destroy_stream(packing_);
}

Result<std::unique_ptr<ByHostsLane>> ByHostsLane::make(OpenDevice& gpu, const SetPlace& place) {
  HORO_TRY(auto own, by_hosts_place(place));
  HORO_TRY(auto* const stream, gpu.device().make_stream());
  return std::unique_ptr<ByHostsLane>(new ByHostsLane(gpu, std::move(own), stream));
}

}  // namespace horo::runtime
