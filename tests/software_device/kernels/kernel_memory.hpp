// SPDX-License-Identifier: Apache-2.0
// Device memory of a test of kernels, and elements of every type.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "runtime/device/driver/driver_kernels.hpp"
#include "tests/software_device/loaded_device.hpp"

namespace horo::tests {

using Bytes = std::vector<std::uint8_t>;

/// The software device, its kernels and a stream. Thread: one.
struct KernelMemory {
  explicit KernelMemory(const std::string& plan = "");

  /// Device memory that holds `bytes`, from `off` bytes behind a multiple of 16 on.
  void* place(const Bytes& bytes, std::size_t off = 0);

  Bytes fetch(const void* from, std::size_t bytes) {
    return tests::fetch(*device, from, bytes, stream);
  }

  SoftwareDevice software;
  std::unique_ptr<runtime::Device> device;
  std::unique_ptr<runtime::DriverKernels> kernels;
  runtime::StreamHandle stream = nullptr;
};

/// Elements that neither exceed the type in small sums nor are all alike; floating ones hold zeros
/// of both signs, subnormal and infinite ones, and NaN if `special`.
Bytes elements_of(runtime::DType dtype, std::size_t count, std::mt19937& random, bool special);

/// An element as a double; `dtype` is floating.
double value_at(const Bytes& bytes, runtime::DType dtype, std::size_t i);

}  // namespace horo::tests
