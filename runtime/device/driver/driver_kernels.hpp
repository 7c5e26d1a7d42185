// SPDX-License-Identifier: Apache-2.0
// The kernels of runtime/device/kernels on a device behind CUDA's driver or HIP's runtime.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/mutex.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/driver/cuda_driver.hpp"

namespace horo::runtime {

/// A reduction of buffers that lie in memory of the device, or that it can read.
struct DeviceReduction {
  std::span<const void* const> in{};  ///< One per rank, at most kMostReduced, each of all elements.
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
  double scale = 1;  ///< Only of floating point.
};

inline constexpr std::size_t kMostReduced = 16;

/// Two vectors that Adasum combines.
struct DevicePair {
  const void* a = nullptr;
  const void* b = nullptr;
  std::uint64_t elements = 0;
  DType dtype = DType::f32;
};

/// Bytes of the scratch memory of add_pair().
inline constexpr std::uint64_t kPairScratch = 8192;

/// Every call puts one launch on the stream, or one per 1,024 tensors (128 with a driver for less
/// than CUDA 12.1, and with HIP). Thread: any. Fails: io (the driver's words), unsupported (no such
/// kernel).
class DriverKernels final : public Packer {
 public:
  /// The file that belongs to this installation; HORO_GPU_KERNELS names another. Empty: there is
  /// none.
  static std::string file(const cuda::DeviceApi& api);

  /// Loads the kernels into the context. Fails: not_found (no such file), io (the driver's words:
  /// it may be older than the kernels).
  static Result<std::unique_ptr<DriverKernels>> load(const cuda::Driver& driver,
                                                     cuda::Context context,
                                                     const std::string& file);
  ~DriverKernels() override;
  DriverKernels(const DriverKernels&) = delete;
  DriverKernels& operator=(const DriverKernels&) = delete;

  Status pack(void* buffer, std::span<const DeviceSpan> parts, const Conversion& how,
              StreamHandle stream) override;
  Status unpack(std::span<const DeviceSpan> parts, const void* buffer, const Conversion& how,
                StreamHandle stream) override;

  /// Reduces in the order of ranks, into tensors that lie end to end in every input.
  Status reduce(const DeviceReduction& what, std::span<const DeviceSpan> out, StreamHandle stream);

  /// `out` becomes the Adasum of the two, times `scale`. `scratch`: kPairScratch bytes of the
  /// device.
  Status add_pair(const DevicePair& pair, void* out, double scale, void* scratch,
                  StreamHandle stream);

 private:
  DriverKernels(const cuda::Driver& driver, cuda::Context context, cuda::Module module, bool many)
      : driver_(driver), context_(context), module_(module), many_(many) {}

  struct Launch {
    std::string name;
    unsigned blocks = 1;
    void* arguments = nullptr;
  };

  Result<cuda::Function> function(const std::string& name);
  Status launch(const Launch& launch, StreamHandle stream);
  template <int kRows>
  Status copy(void* buffer, std::span<const DeviceSpan> parts, const Conversion& how,
              bool to_tensors, StreamHandle stream);
  template <int kRows>
  Status reduce_rows(const DeviceReduction& what, std::span<const DeviceSpan> out,
                     StreamHandle stream);

  const cuda::Driver& driver_;
  const cuda::Context context_;
  const cuda::Module module_;
  const bool many_;  ///< Launches take tables of 1,024 tensors.
  Mutex mutex_;
  std::map<std::string, cuda::Function, std::less<>> functions_ HORO_GUARDED_BY(mutex_);
};

}  // namespace horo::runtime
