// SPDX-License-Identifier: Apache-2.0
// The GPUs of a running job's hosts as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "timeline/chrome/json_reader.hpp"
#include "timeline/live/live_gpu.hpp"

namespace horo::timeline {

/// A head line and a line for each GPU; nothing without GPUs.
std::vector<std::string> gpu_table(const std::vector<LiveGpu>& gpus);

/// "GPU 0 on node1: 42 % busy, 20 GiB of 80 GiB used, 61 C, 2 NVLinks to GPU 1; rank 3"
std::string gpu_line(const LiveGpu& gpu);

void write(JsonWriter& json, const LiveGpu& gpu);

/// Reads what write() has written. False: it is not a GPU; `json` has the problem.
bool read_gpu(JsonReader& json, LiveGpu& gpu);

}  // namespace horo::timeline
