// SPDX-License-Identifier: Apache-2.0
// Notices GPUs of this host that fail while ranks run: NVIDIA's by the critical errors (Xid) that
// the driver reports, AMD's by the kernel's log and the files of their devices.
#pragma once

#include <atomic>
#include <condition_variable>
#include <string>
#include <thread>

#include "base/mutex.hpp"

namespace horo::launcher {

/// Where the host has no GPU, it does nothing and loads no library. Thread: owner.
class GpuWatch {
 public:
  /// Reads AMD's GPUs below `root`.
  explicit GpuWatch(std::string root = "");
  /// Blocks: for a twentieth of a second at most, where the host has GPUs.
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  /// "GPU 3 (GPU-6fd0…) reported Xid 79 (it has fallen off the bus)", for each failure since the
  /// beginning; empty: none. Blocks: no.
  std::string faults() const;

 private:
  void watch_nvidia();
  void watch_amd();
  void note(const std::string& fault);
  /// Waits for the time of one look; false: the watch ends.
  bool pause();

  const std::string root_;
  mutable Mutex mutex_;
  std::condition_variable stopping_;
  std::string faults_ HORO_GUARDED_BY(mutex_);
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

/// The meaning of an Xid, as NVIDIA's list has it; "an error of the GPU" for most.
std::string_view describe_xid(unsigned long long number);

}  // namespace horo::launcher
