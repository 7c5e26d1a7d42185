// SPDX-License-Identifier: Apache-2.0
// NCCL, or RCCL on AMD's devices, as a way between the devices of a set's members.
#pragma once

#include <string>

#include "runtime/backends/device_path.hpp"
#include "runtime/backends/nccl/nccl_library.hpp"

namespace horo::runtime {

class NcclPath final : public DevicePath {
 public:
  /// `file`: of the library, which is loaded when the path is offered. `streams`: as many as a set
  /// may use, from 1.
  NcclPath(std::string file, const nccl::Brand& brand, int streams)
      : file_(std::move(file)), brand_(brand), streams_(streams) {}

  std::string_view name() const override { return "nccl"; }

  std::string described() const override;
  Result<std::string> offer(Device& device, int position, int members) override;
  Status check(std::span<const DeviceMember> members) const override;
  bool takes(const Signature& like) const override;
  Result<std::unique_ptr<Backend>> connect(const DeviceSet& set) override;

 private:
  const std::string file_;
  const nccl::Brand& brand_;
  const int streams_;
  const nccl::Library* library_ = nullptr;
  // Known once connected:
  bool packs_ = false;  ///< All members have kernels.
  int used_ = 1;        ///< Streams.
};

}  // namespace horo::runtime
