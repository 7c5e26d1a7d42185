// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace horo::timeline {

/// The links (NVLink) between a GPU and one neighbour.
struct LiveGpuLinks {
  std::string peer;  ///< "GPU 3", or the address of a switch.
  int links = 0;
};

/// A GPU of a host of a running job, as its driver describes it.
struct LiveGpu {
  std::string host;
  int index = 0;
  std::string name;
  std::string uuid;
  int busy = -1;           ///< Per cent of the last moment; -1: unknown.
  std::uint64_t used = 0;  ///< Bytes.
  std::uint64_t memory = 0;
  int celsius = -1;  ///< -1: unknown.
  int slices = 0;    ///< MIG devices.
  std::vector<LiveGpuLinks> links;
  std::vector<int> ranks;  ///< Those that compute on it, where the driver tells.
  std::string problem;     ///< Why it cannot be used; empty: it can.
};

}  // namespace horo::timeline
