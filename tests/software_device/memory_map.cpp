// SPDX-License-Identifier: Apache-2.0
#include "tests/software_device/memory_map.hpp"

#include <algorithm>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace horo::software_device {

namespace {

std::uint64_t whole_pages(std::uint64_t bytes) {
  return (std::max<std::uint64_t>(bytes, 1) + 4095) / 4096 * 4096;
}

std::uint64_t known(const Order& order, std::size_t stream) {
  return stream < order.size() ? order[stream] : 0;
}

/// Two views of the same pages: one that nobody may touch, and one for the device.
bool map_file(Allocation& made) {
  const auto size = whole_pages(made.bytes);
  void* const alias = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, made.file, 0);
  void* const seen = mmap(nullptr, size, PROT_NONE, MAP_SHARED, made.file, 0);
  made.alias = static_cast<std::byte*>(alias);
  made.address = static_cast<std::byte*>(seen);
  return alias != MAP_FAILED && seen != MAP_FAILED;
}

bool map_twice(Allocation& made) {
  made.file = memfd_create("horo-software-device", MFD_CLOEXEC);
  if (made.file < 0) return false;
  const bool mapped =
      ftruncate(made.file, static_cast<off_t>(whole_pages(made.bytes))) == 0 && map_file(made);
  if (!mapped) close(made.file);
  return mapped;
}

bool map_once(Allocation& made) {
  void* const memory = mmap(nullptr, whole_pages(made.bytes), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  made.address = made.alias = static_cast<std::byte*>(memory);
  return true;
}

const char* word(Access access) {
  return access == Access::read ? "reads" : "writes";
}

}  // namespace

void join(Order& order, const Order& more) {
  if (order.size() < more.size()) order.resize(more.size());
  for (std::size_t s = 0; s < more.size(); ++s) order[s] = std::max(order[s], more[s]);
}

std::byte* MemoryMap::allocate(std::uint64_t bytes, int device) {
  Allocation made{.bytes = bytes, .device = device};
  if (!(device < 0 ? map_once(made) : map_twice(made))) return nullptr;
  allocated_ += bytes;
  return keep(std::move(made));
}

std::byte* MemoryMap::allocate_managed(std::uint64_t bytes, int device) {
  Allocation made{.bytes = bytes, .device = device, .managed = true};
  if (!map_once(made)) return nullptr;
  allocated_ += bytes;
  return keep(std::move(made));
}

std::byte* MemoryMap::import(int file, std::uint64_t bytes, int device) {
  Allocation made{.bytes = bytes, .device = device, .imported = true, .file = file};
  return map_file(made) ? keep(std::move(made)) : nullptr;
}

std::byte* MemoryMap::keep(Allocation made) {
  return allocations_.insert_or_assign(made.address, std::move(made)).first->second.address;
}

Allocation* MemoryMap::find(const void* address) {
  const auto* const at = static_cast<const std::byte*>(address);
  auto next = allocations_.upper_bound(at);
  if (next == allocations_.begin()) return nullptr;
  auto& allocation = std::prev(next)->second;
  const auto size = std::max<std::uint64_t>(allocation.bytes, 1);
  return at < allocation.address + size ? &allocation : nullptr;
}

bool MemoryMap::free(const void* address, const Order& host, std::vector<std::string>& findings) {
  auto* const allocation = find(address);
  if (allocation == nullptr || allocation->address != address || allocation->freed) return false;
  bool in_use = false;
  for (const auto& use : allocation->uses) {
    if (use.number <= known(host, use.stream)) continue;
    in_use = true;
    findings.push_back(fmt::format("freed in use: operation {} of stream {} {} memory at {}",
                                   use.number, use.stream, word(use.access), address));
  }
  if (!allocation->imported) allocated_ -= allocation->bytes;
  allocation->freed = true;
  if (allocation->file >= 0) close(std::exchange(allocation->file, -1));
  // The addresses stay reserved, so that a later use of them is found. An operation that has not
  // run still uses the pages.
  const auto size = whole_pages(allocation->bytes);
  if (in_use) return true;
  if (allocation->alias != allocation->address) munmap(allocation->alias, size);
  mmap(allocation->address, size, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  return true;
}

void MemoryMap::use(Allocation& allocation, const Use& use, const Order& order, const Order& host,
                    std::vector<std::string>& findings) {
  auto& uses = allocation.uses;
  // The host knows that these have ended, so everything that it starts comes after them.
  std::erase_if(uses, [&](const Use& old) { return old.number <= known(host, old.stream); });
  for (const auto& old : uses) {
    const bool apart = old.offset >= use.offset + use.bytes || use.offset >= old.offset + old.bytes;
    const bool both_read = old.access == Access::read && use.access == Access::read;
    if (apart || both_read || old.stream == use.stream) continue;
    if (old.number <= known(order, old.stream)) continue;
    findings.push_back(
        fmt::format("not ordered: operation {} of stream {} {} memory at {} that operation {} of "
                    "stream {} {}",
                    use.number, use.stream, word(use.access),
                    static_cast<const void*>(allocation.address + use.offset), old.number,
                    old.stream, word(old.access)));
  }
  uses.push_back(use);
}

}  // namespace horo::software_device
