// SPDX-License-Identifier: Apache-2.0
// The software device in a test's process: its driver, as the runtime loads it, and its own
// functions.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.hpp"
#include "runtime/device/driver/cuda_driver.hpp"
#include "tests/software_device/software_device.h"

namespace horo::tests {

/// Thread: any. There is one per process.
class SoftwareDevice {
 public:
  /// The path of the library; HORO_TEST_DEVICE_LIBRARY names the one with HIP's names.
  static std::string path();

  /// Loads it with this plan, see fault_plan.hpp.
  explicit SoftwareDevice(const std::string& plan = "");

  void plan(const std::string& text) const;

  /// The findings since the last plan; empty: there are none.
  std::string findings() const;

  std::size_t pending() const { return pending_(); }

  /// The stream waits here until `open` is true, which outlives the wait.
  void gate(runtime::Device& device, runtime::StreamHandle stream, std::atomic<bool>& open) const;

  std::size_t allocated() const { return allocated_(); }

  const runtime::cuda::Driver& driver() const { return *driver_; }

  /// Device `index`, as a program of a user would have it.
  std::unique_ptr<runtime::Device> open(int index = 0) const;

 private:
  const runtime::cuda::Driver* driver_ = nullptr;
  int (*plan_)(const char*) = nullptr;
  std::size_t (*findings_)(char*, std::size_t) = nullptr;
  std::size_t (*pending_)() = nullptr;
  int (*launch_)(void*, horo_software_device_span*, std::size_t, void (*)(void*, int),
                 void*) = nullptr;
  std::size_t (*allocated_)() = nullptr;
};

/// Puts bytes into device memory behind the work of a stream, as a kernel would.
void put(runtime::Device& device, void* to, const std::vector<std::uint8_t>& bytes,
         runtime::StreamHandle stream);

/// Reads device memory behind the work of a stream. Blocks: until the stream is there.
std::vector<std::uint8_t> fetch(runtime::Device& device, const void* from, std::size_t bytes,
                                runtime::StreamHandle stream);

}  // namespace horo::tests
