// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/ipc/ipc_path.hpp"

#include "runtime/backends/ipc/ipc_backend.hpp"

namespace horo::runtime {

namespace {

/// Each rank reads the bucket of every other one, so larger ones are better off in a ring.
constexpr std::uint64_t kOneShot = std::uint64_t{256} << 10U;

class IpcPath final : public DevicePath {
 public:
  std::string_view name() const override { return "ipc"; }

  Result<std::string> offer(Device& device, int /*position*/, int /*members*/) override {
    HORO_TRY(auto shared, SharedDevice::of(device));
    HORO_TRY(slots_, ipc::Slots::make(device, shared));
    HORO_TRY(auto bytes, slots_->offer());
    static_assert(kMostOffer >= 328);
    return bytes;
  }

  Status check(std::span<const DeviceMember> members) const override {
    if (members.size() > static_cast<std::size_t>(kMostIpcRanks)) {
      return fail(Errc::unavailable, "'ipc' is for at most {} ranks, the set has {}", kMostIpcRanks,
                  members.size());
    }
    for (const auto& member : members) {
      if (member.host != members.front().host) {
        return fail(Errc::unavailable, "'ipc' is for ranks of one host; ranks {} and {} are on two",
                    members.front().rank, member.rank);
      }
    }
    return {};
  }

  bool takes(const Signature& like) const override { return ipc_takes(like); }

  std::uint64_t best_up_to() const override { return kOneShot; }

  bool waits_on_device() const override { return false; }

  Result<std::unique_ptr<Backend>> connect(const DeviceSet& set) override {
    HORO_TRY(auto shared, SharedDevice::of(set.gpu->device()));
    if (slots_ == nullptr) return fail(Errc::protocol, "'ipc' connects before its offer");
    IpcBackend::Parts parts{.device = &set.gpu->device(),
                            .gpu = set.gpu,
                            .position = set.position,
                            .ranks = {},
                            .timeout = set.timeout};
    for (std::size_t r = 0; r < set.members.size(); ++r) {
      if (static_cast<int>(r) == set.position) {
        parts.ranks.push_back(std::move(slots_));
        continue;
      }
      auto opened = ipc::Slots::open(set.gpu->device(), shared, set.members[r].offer);
      if (!opened) {
        return Failure(Error{opened.error()}.context(
            fmt::format("device memory of rank {}", set.members[r].rank)));
      }
      parts.ranks.push_back(std::move(*opened));
    }
    return IpcBackend::make(std::move(parts));
  }

 private:
  std::unique_ptr<ipc::Slots> slots_;
};

}  // namespace

std::unique_ptr<DevicePath> make_ipc_path() {
  return std::make_unique<IpcPath>();
}

}  // namespace horo::runtime
