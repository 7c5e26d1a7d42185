// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/nccl/nccl_path.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/backends/nccl/nccl_backend.hpp"

namespace horo::runtime {

namespace {

/// A member's offer, as it travels. Other processes have written it.
struct Offer {
  int version = 0;
  bool packs = false;
  nccl::UniqueId id;  ///< At position 0.
};

std::string to_text(const Offer& offer) {
  std::string text(sizeof offer, '\0');
  std::memcpy(text.data(), &offer, sizeof offer);
  return text;
}

Result<Offer> offer_of(const DeviceMember& member) {
  Offer offer;
  if (member.offer.size() != sizeof offer)
    return fail(Errc::protocol, "rank {} has offered {} bytes, not {}", member.rank,
                member.offer.size(), sizeof offer);
  std::memcpy(static_cast<void*>(&offer), member.offer.data(), sizeof offer);
  return offer;
}

/// Two members that share a device.
Status check_devices(std::span<const DeviceMember> members) {
  const auto twins = shared_device(members);
  if (!twins) return {};
  return fail(Errc::unavailable,
              "ranks {} and {} use one device ({}), which NCCL refuses; start the job with --gpus "
              "auto, or choose the device by the local rank",
              twins->first->rank, twins->second->rank, twins->first->uuid);
}

}  // namespace

Result<std::string> NcclPath::offer(Device& device, int position) {
  HORO_TRY(library_, nccl::load(file_));
  Offer offer{.packs = device.packer() != nullptr, .id = {}};
  HORO_TRY_STATUS(library_->status(library_->get_version(&offer.version), "ncclGetVersion"));
  if (position == 0)
    HORO_TRY_STATUS(library_->status(library_->get_unique_id(&offer.id), "ncclGetUniqueId"));
  return to_text(offer);
}

Status NcclPath::check(std::span<const DeviceMember> members) const {
  HORO_TRY(const auto first, offer_of(members.front()));
  for (const auto& member : members) {
    HORO_TRY(const auto other, offer_of(member));
    if (other.version == first.version) continue;
    return fail(Errc::unavailable, "NCCL {} on rank {}, and {} on rank {}; install one version",
                first.version, members.front().rank, other.version, member.rank);
  }
  return check_devices(members);
}

bool NcclPath::takes(const Signature& like) const {
  return NcclBackend::takes(like, packs_);
}

Result<std::unique_ptr<Backend>> NcclPath::connect(const DeviceSet& set) {
  packs_ = true;
  for (const auto& member : set.members) {
    HORO_TRY(const auto offer, offer_of(member));
    packs_ = packs_ && offer.packs;
  }
  HORO_TRY(const auto first, offer_of(set.members.front()));
  const EnteredDevice entered(set.gpu->device());
  HORO_TRY_STATUS(entered.status());
  return NcclBackend::join(*library_, {.gpu = set.gpu,
                                       .id = first.id,
                                       .position = set.position,
                                       .ranks = static_cast<int>(set.members.size()),
                                       .packs = packs_});
}

}  // namespace horo::runtime
