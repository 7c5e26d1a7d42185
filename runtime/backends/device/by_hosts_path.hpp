// SPDX-License-Identifier: Apache-2.0
// Another path as a way among the devices of each host, for sets over several hosts whose devices
// it does not connect.
#pragma once

#include <memory>
#include <string>

#include "runtime/backends/device/by_hosts_place.hpp"
#include "runtime/backends/device_path.hpp"

namespace horo::runtime {

/// When sums go by hosts.
enum class ByHostsUse : std::uint8_t {
  fallback,   ///< Where no path connects all devices.
  preferred,  ///< Always. The user has asked for it.
  never,      ///< The user has switched it off.
  unordered,  ///< Sums have to be in the order of ranks, which those inside a host are not.
};

class ByHostsPath final : public DevicePath {
 public:
  struct Parts {
    std::string name;
    std::unique_ptr<DevicePath> inner;          ///< It connects the ranks of one host.
    bool (*moves)(const Signature&) = nullptr;  ///< Whether its backend does.
    std::string why_not;                        ///< Empty: this rank may use it.
    ByHostsUse use = ByHostsUse::fallback;
  };

  ByHostsPath(Parts parts, ByHostsPlace place)
      : parts_(std::move(parts)), place_(std::move(place)) {}

  std::string_view name() const override { return parts_.name; }

  DeviceReach reach() const override { return DeviceReach::host; }

  bool comes_first() const override { return first_; }

  /// Smaller sums need fewer steps through host memory.
  std::uint64_t best_from() const override;
  std::string described() const override;
  Result<std::string> offer(Device& device, int position, int members) override;
  Status check(std::span<const DeviceMember> members) const override;
  bool takes(const Signature& like) const override;

  bool waits_on_device() const override { return parts_.inner->waits_on_device(); }

  Result<std::unique_ptr<Backend>> connect(const DeviceSet& set) override;

 private:
  const Parts parts_;
  const ByHostsPlace place_;
  mutable bool first_ = false;  ///< All members prefer it; known after check().
};

}  // namespace horo::runtime
