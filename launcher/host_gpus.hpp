// SPDX-License-Identifier: Apache-2.0
// The state of the GPUs of this host, for programs that look at a running job.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "timeline/live/live_gpu.hpp"
#include "timeline/live/live_row.hpp"

namespace horo::launcher {

/// Reads NVIDIA's GPUs by the driver's library, or else AMD's by the kernel's files, in a thread of
/// its own that exists only while it reads, because a driver in trouble may not answer for long or
/// ever. Where the host has no GPU, no library is loaded. Thread: owner.
class HostGpus {
 public:
  struct View {
    std::vector<timeline::LiveGpu> gpus;  ///< As they were last read; without their host.
    std::string problem;  ///< Why there is no newer state of them; empty: there is none.
  };

  /// Reads AMD's GPUs below `root`.
  explicit HostGpus(const std::string& root = "");
  ~HostGpus();
  HostGpus(const HostGpus&) = delete;
  HostGpus& operator=(const HostGpus&) = delete;

  /// Starts to read the GPUs, unless the last reading has not ended. `rows` says which processes
  /// are ranks. Blocks: for the reading that it has started, for `most` at most.
  View look(const std::vector<timeline::LiveRow>& rows, Duration most);

 private:
  class State;

  std::shared_ptr<State> state_;
};

}  // namespace horo::launcher
