// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/nccl/nccl_path.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/backends/nccl/nccl_backend.hpp"

namespace horo::runtime {

namespace {

/// Ids that one member makes at most.
constexpr int kMostIds = 3;

/// A member's offer, as it travels. Other processes have written it.
struct Offer {
  int version = 0;
  int streams = 1;  ///< That it may use, from 1.
  bool packs = false;
  bool rccl = false;  ///< RCCL counts versions as NCCL, but they do not work together.
  std::array<nccl::UniqueId, kMostIds> ids{};  ///< Those that this member makes.
};

static_assert(sizeof(Offer) <= kMostOffer);

/// A stream has a communicator, whose id the members make in turn.
int maker_of(int stream, int members) {
  return stream % members;
}

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

const char* brand_of(const Offer& offer) {
  return offer.rccl ? nccl::kRccl.name : nccl::kNccl.name;
}

/// Two members that share a device.
Status check_devices(std::span<const DeviceMember> members, const nccl::Brand& brand) {
  const auto twins = shared_device(members);
  if (!twins) return {};
  return fail(Errc::unavailable,
              "ranks {} and {} use one device ({}), which {} refuses; start the job with --gpus "
              "auto, or choose the device by the local rank",
              twins->first->rank, twins->second->rank, twins->first->uuid, brand.name);
}

}  // namespace

std::string NcclPath::described() const {
  return used_ == 1 ? "nccl" : fmt::format("nccl on {} streams", used_);
}

Result<std::string> NcclPath::offer(Device& device, int position, int members) {
  HORO_TRY(library_, nccl::load(file_, brand_));
  Offer offer{.streams = std::min(streams_, kMostIds * members),
              .packs = device.packer() != nullptr,
              .rccl = library_->brand == &nccl::kRccl};
  HORO_TRY_STATUS(library_->status(library_->get_version(&offer.version), "ncclGetVersion"));
  if (offer.version < nccl::kOldestVersion) {
    return fail(Errc::unavailable, "{} {} is too old; install 2.8 or later", library_->brand->name,
                nccl::version_text(offer.version));
  }
  for (int stream = 0; stream < offer.streams; ++stream) {
    if (maker_of(stream, members) != position) continue;
    auto* const id = &offer.ids.at(static_cast<std::size_t>(stream / members));
    HORO_TRY_STATUS(library_->status(library_->get_unique_id(id), "ncclGetUniqueId"));
  }
  return to_text(offer);
}

Status NcclPath::check(std::span<const DeviceMember> members) const {
  HORO_TRY(const auto first, offer_of(members.front()));
  for (const auto& member : members) {
    HORO_TRY(const auto other, offer_of(member));
    if (other.rccl != first.rccl) {
      return fail(Errc::unavailable, "{} on rank {}, and {} on rank {}: they do not work together",
                  brand_of(first), members.front().rank, brand_of(other), member.rank);
    }
    if (other.version == first.version) continue;
    return fail(Errc::unavailable, "{} {} on rank {}, and {} on rank {}; install one version",
                brand_of(first), nccl::version_text(first.version), members.front().rank,
                nccl::version_text(other.version), member.rank);
  }
  return check_devices(members, brand_);
}

bool NcclPath::takes(const Signature& like) const {
  return NcclBackend::takes(like, packs_);
}

Result<std::unique_ptr<Backend>> NcclPath::connect(const DeviceSet& set) {
  packs_ = true;
  const auto members = static_cast<int>(set.members.size());
  int streams = kMostIds * members;
  std::vector<Offer> offers;
  for (const auto& member : set.members) {
    HORO_TRY(const auto offer, offer_of(member));
    packs_ = packs_ && offer.packs;
    streams = std::min(streams, std::max(offer.streams, 1));
    offers.push_back(offer);
  }
  used_ = streams;
  std::vector<nccl::UniqueId> ids;
  for (int stream = 0; stream < streams; ++stream) {
    const auto& maker = offers[static_cast<std::size_t>(maker_of(stream, members))];
    ids.push_back(maker.ids.at(static_cast<std::size_t>(stream / members)));
  }
  const EnteredDevice entered(set.gpu->device());
  HORO_TRY_STATUS(entered.status());
  return NcclBackend::join(*library_, {.gpu = set.gpu,
                                       .ids = std::move(ids),
                                       .position = set.position,
                                       .ranks = members,
                                       .packs = packs_});
}

}  // namespace horo::runtime
