// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/set_region.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/host/huge_pages.hpp"
#include "runtime/host/read_once.hpp"

namespace horo::runtime {

SetRegion::SetRegion(HostMemory& host, std::size_t index, Members members, RegionUse use)
    : host_(host), index_(index), members_(std::move(members)), use_(use), params_(host.params()) {
  const auto mine = std::find(members_.begin(), members_.end(), host.me());
  if (mine != members_.end()) me_ = static_cast<int>(mine - members_.begin());
  params_.local_size = static_cast<std::uint32_t>(members_.size());
  if (use == RegionUse::rings) params_.capacity = kLeastCapacity;
  layout_ = BoardLayout::of(params_, use != RegionUse::agreement);
}

Result<std::unique_ptr<SetRegion>> SetRegion::attach(HostMemory& host, std::size_t index,
                                                     Members members, RegionUse use) {
  std::unique_ptr<SetRegion> region(new SetRegion(host, index, std::move(members), use));
  const bool only_leads = use == RegionUse::agreement && host.me() == LocalRank{0};
  HORO_CHECK(index < kMostRegions && !region->members_.empty() && (region->me_ >= 0 || only_leads));
  HORO_CHECK(region->layout_.total <= host.layout().region_bytes);
  HORO_TRY(region->base_, host.map_region(index));
  region->find_tables();
  HORO_TRY_STATUS(region->lay_out_once());
  HORO_TRY_STATUS(region->back_own_ring());
  return region;
}

Status SetRegion::back_own_ring() const {
  if (me_ < 0 || layout_.ring_bytes == 0) return {};
  const auto at = layout_.rings + static_cast<std::uint64_t>(me_) * layout_.ring_bytes;
  back_by_huge_pages(base_ + at, layout_.ring_bytes);
  return allocate(at, layout_.ring_bytes).context("this rank's ring of a process set");
}

void SetRegion::find_tables() {
  const auto at = [this](auto*& table, std::uint64_t offset) {
    table = reinterpret_cast<std::remove_reference_t<decltype(table)>>(base_ + offset);
  };
  at(tables_.body, layout_.body);
  at(tables_.ranks, layout_.ranks);
  at(tables_.tensors, layout_.tensors);
  at(tables_.mark_groups, layout_.marks);
  at(tables_.rank_tensors, layout_.rank_tensors);
  at(tables_.signatures, layout_.signatures);
  at(tables_.ready, layout_.ready);
  at(tables_.pending, layout_.pending);
  at(tables_.log, layout_.log);
  at(tables_.words, layout_.words);
  at(tables_.buckets, layout_.buckets);
}

Status SetRegion::lay_out_once() {
  auto& state = host_.body().regions[index_].laid_out;
  std::uint32_t fresh = 0;
  if (state.compare_exchange_strong(fresh, 1, std::memory_order_acq_rel)) {
    auto status = allocate(0, layout_.rings).context("the board of a process set");
    state.store(status ? 2 : 3, std::memory_order_seq_cst);
    futex::wake(state);
    HORO_TRY_STATUS(std::move(status));
  }
  while (state.load(std::memory_order_acquire) == 1) {
    if (poison_of(header()).cause != LossCause::none)
      return fail(Errc::peer_lost, "a rank ended while the board of a process set was made");
    futex::wait(state, 1, std::chrono::milliseconds(100));
  }
  if (state.load(std::memory_order_acquire) != 2) {
    return fail(Errc::out_of_memory,
                "another rank could not get memory for the board of a process set");
  }
  host_.body().regions[index_].users.fetch_add(1, std::memory_order_acq_rel);
  counted_ = true;
  return {};
}

SetRegion::~SetRegion() {
  if (base_ != nullptr) host_.unmap_region(index_, base_, counted_);
}

Status SetRegion::allocate(std::uint64_t offset, std::uint64_t bytes) const {
  return host_.allocate(host_.layout().regions + index_ * host_.layout().region_bytes + offset,
                        bytes);
}

int SetRegion::member_of(Rank rank) const {
  for (int m = 0; m < local_size(); ++m) {
    if (global_rank(m) == rank) return m;
  }
  return -1;
}

std::uint64_t SetRegion::least_cursor(std::uint64_t tail) const {
  auto least = tail;
  for (int m = 0; m < local_size(); ++m) {
    if (rank_slot(m).state.load(std::memory_order_relaxed) == RankState::detached) continue;
    least = std::min(least, area(m).cursor.load(std::memory_order_seq_cst));
  }
  return least;
}

std::uint32_t SetRegion::tensor_count() const {
  return std::min(body().tensor_count.load(std::memory_order_acquire), params_.capacity);
}

std::string_view SetRegion::tensor_name(TensorId id) const {
  const auto& slot = tensor(id);
  const auto place = read_once(slot.name_place) * kNameUnit;
  const std::size_t length = read_once(slot.name_length);
  if (place + length > layout_.heap_bytes) return "?";
  return {reinterpret_cast<const char*>(base_ + layout_.heap + place), length};
}

}  // namespace horo::runtime
