// SPDX-License-Identifier: Apache-2.0
// NCCL as a way between the devices of a set's members.
#pragma once

#include <string>

#include "runtime/backends/device_path.hpp"
#include "runtime/backends/nccl/nccl_library.hpp"

namespace horo::runtime {

class NcclPath final : public DevicePath {
 public:
  /// `file`: of the library, which is loaded when the path is offered.
  explicit NcclPath(std::string file) : file_(std::move(file)) {}

  std::string_view name() const override { return "nccl"; }

  Result<std::string> offer(Device& device, int position) override;
  Status check(std::span<const DeviceMember> members) const override;
  bool takes(const Signature& like) const override;
  Result<std::unique_ptr<Backend>> connect(const DeviceSet& set) override;

 private:
  const std::string file_;
  const nccl::Library* library_ = nullptr;
  bool packs_ = false;  ///< All members have kernels; known once connected.
};

}  // namespace horo::runtime
