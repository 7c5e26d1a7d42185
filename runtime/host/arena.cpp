// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/arena.hpp"

#include <algorithm>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "runtime/host/huge_pages.hpp"

namespace horo::runtime {

namespace {

constexpr std::uint64_t kGranule = 256;  // So that two tensors never share a cache line.
constexpr std::uint64_t kWorthReturning = 1 << 20;

}  // namespace

Arena::Arena(std::shared_ptr<HostMemory> host)
    : host_(std::move(host)), size_(host_->params().arena_bytes), first_(host_->my_arena()) {
  if (size_ != 0) free_.emplace(0, size_);
}

Result<void*> Arena::allocate(std::uint64_t bytes) {
  if (bytes > size_) {
    return fail(
        Errc::resource_exhausted,
        "{} bytes of shared memory exceed this rank's arena of {} bytes; raise HORO_ARENA_SIZE",
        bytes, size_);
  }
  const auto wanted = std::max<std::uint64_t>(bytes + kGranule - 1, kGranule) / kGranule * kGranule;
  const MutexLock lock(mutex_);
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second >= wanted && (best == free_.end() || it->second < best->second)) best = it;
  }
  if (best == free_.end()) {
    return fail(
        Errc::resource_exhausted,
        "this rank's arena of {} bytes has no room for {} more bytes; raise HORO_ARENA_SIZE", size_,
        bytes);
  }
  const auto offset = best->first;
  if (wanted >= kHugePage) back_by_huge_pages(host_->at(first_ + offset), wanted);
  if (auto allocated = host_->allocate(first_ + offset, wanted); !allocated) {
    give_back(offset, wanted);  // Huge pages that it has got already.
    return Failure(std::move(allocated).error());
  }
  const auto left = best->second - wanted;
  free_.erase(best);
  if (left != 0) free_.emplace(offset + wanted, left);
  used_.emplace(offset, wanted);
  auto* memory = host_->at(first_ + offset);
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (wanted >= page) {
    // Map the pages now rather than one fault at a time inside the first collective.
    const auto ahead = reinterpret_cast<std::uintptr_t>(memory) % page;
    madvise(memory - ahead, wanted + ahead, MADV_POPULATE_WRITE);
  }
  return static_cast<void*>(memory);
}

Status Arena::free(void* memory) {
  if (memory == nullptr) return {};
  const auto offset =
      static_cast<std::uint64_t>(static_cast<std::byte*>(memory) - host_->at(0)) - first_;
  const MutexLock lock(mutex_);
  const auto found = used_.find(offset);
  if (found == used_.end()) {
    return fail(Errc::invalid_argument, "{} was not allocated by horo_alloc, or is free already",
                memory);
  }
  auto bytes = found->second;
  used_.erase(found);
  if (bytes >= kWorthReturning) give_back(offset, bytes);
  auto start = offset;
  auto next = free_.lower_bound(start);
  if (next != free_.end() && next->first == start + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == start) {
      start = previous->first;
      bytes += previous->second;
      free_.erase(previous);
    }
  }
  free_.emplace(start, bytes);
  return {};
}

void Arena::give_back(std::uint64_t offset, std::uint64_t bytes) {
  const auto first = (first_ + offset + kPage - 1) / kPage * kPage;
  const auto last = (first_ + offset + bytes) / kPage * kPage;
  if (last > first) host_->release(first, last - first);
}

}  // namespace horo::runtime
