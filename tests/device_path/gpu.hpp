// SPDX-License-Identifier: Apache-2.0
// A GPU as a program of a user sees it: CUDA's driver from a file, by its own interface.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "horo/horo.h"
#include "tests/software_device/software_device.h"

namespace horo::tests {

/// Ends the process with a message when a call fails. A process may have one for each device; each
/// call makes the device's primary context current. Thread: the one that made it.
class Gpu {
 public:
  Gpu(const std::string& driver, int device);

  int device() const { return device_; }

  void* allocate(std::size_t bytes) const;
  void* allocate_managed(std::size_t bytes) const;
  /// Host memory that the device may read.
  void* allocate_pinned(std::size_t bytes) const;
  void free(void* memory) const;
  void* stream() const;
  void destroy(void* stream) const;

  /// Behind the work of the stream. The source's bytes are read before it returns.
  void put(void* to, const std::vector<std::uint8_t>& bytes, void* stream) const;

  /// Behind the work of the stream. Blocks: until the stream is there.
  std::vector<std::uint8_t> fetch(const void* from, std::size_t bytes, void* stream) const;

  void synchronize(void* stream) const;

  // -- Of the software device -------------------------------------------------------------------

  void plan(const std::string& text) const;

  /// Empty: there are none since the last plan.
  std::string findings() const;

  /// The same of the software NCCL that HORO_GPU_NCCL names.
  static void plan_nccl(const std::string& text);
  static std::string nccl_findings();

  std::size_t pending() const { return pending_(); }

  /// How often an entry point of the driver was called since the last plan.
  std::size_t calls(const char* name) const { return calls_(name); }

  /// The stream waits here until `open` is true, which outlives the wait.
  void gate(void* stream, std::atomic<bool>& open) const;

 private:
  void check(int code, const char* call) const;
  void use() const;

  int device_ = 0;
  void* context_ = nullptr;
  int (*push_)(void*) = nullptr;
  int (*allocate_)(std::uint64_t*, std::size_t) = nullptr;
  int (*allocate_managed_)(std::uint64_t*, std::size_t, unsigned) = nullptr;
  int (*allocate_pinned_)(void**, std::size_t, unsigned) = nullptr;
  int (*free_)(std::uint64_t) = nullptr;
  int (*copy_)(std::uint64_t, std::uint64_t, std::size_t, void*) = nullptr;
  int (*stream_)(void**, unsigned) = nullptr;
  int (*destroy_)(void*) = nullptr;
  int (*synchronize_)(void*) = nullptr;
  int (*plan_)(const char*) = nullptr;
  std::size_t (*findings_)(char*, std::size_t) = nullptr;
  std::size_t (*pending_)() = nullptr;
  std::size_t (*calls_)(const char*) = nullptr;
  int (*launch_)(void*, horo_software_device_span*, std::size_t, void (*)(void*, int),
                 void*) = nullptr;
};

/// Ends the process unless `good`.
void require(bool good, const std::string& what);

/// Declares a tensor in device memory, and returns its submission in place.
horo_submission declared(const Gpu& gpu, horo_tensor_desc like, void* memory, void* stream);

}  // namespace horo::tests
