// SPDX-License-Identifier: Apache-2.0
#include "tests/software_device/torch_device/torch_allocator.hpp"

#include <algorithm>
#include <bit>
#include <c10/core/Allocator.h>

#include "tests/software_device/torch_device/torch_driver.hpp"

namespace horo::torch_device {

namespace {

constexpr std::size_t kLeast = 512;
constexpr std::size_t kSegment = std::size_t{1} << 20;

class TorchAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const auto device = Current::of_thread().device;
    void* const memory =
        bytes == 0 ? nullptr : CachingAllocator::instance().allocate(device, bytes);
    return {memory, memory, &release,
            c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device))};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    const int device = Current::of_thread().device;
    const InContext context(device);
    check(driver().copy(reinterpret_cast<std::uint64_t>(to), reinterpret_cast<std::uint64_t>(from),
                        bytes, Current::stream(device)),
          "cuMemcpyAsync");
  }

 private:
  static void release(void* memory) {
    if (memory != nullptr) CachingAllocator::instance().free(memory);
  }
};

TorchAllocator torch_allocator;
[[maybe_unused]] const c10::AllocatorRegisterer<c10::DeviceType::PrivateUse1> registered(
    &torch_allocator);

}  // namespace

CachingAllocator& CachingAllocator::instance() {
  static auto* const allocator = new CachingAllocator;  // Tensors may die when the process ends.
  return *allocator;
}

void* CachingAllocator::allocate(int device, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  sweep();
  auto* const stream = Current::stream(device);
  const auto size = std::bit_ceil(std::max(bytes, kLeast));
  auto& idle = idle_[{device, stream, size}];
  void* memory = nullptr;
  if (idle.empty()) {
    memory = cut(device, stream, size);
  } else {
    memory = idle.back();  // The last one first: the sooner a wrong use is found.
    idle.pop_back();
  }
  used_[memory] = {.device = device, .stream = stream, .bytes = size, .others = {}};
  return memory;
}

void* CachingAllocator::cut(int device, void* stream, std::size_t bytes) {
  auto& [start, left] = segments_[{device, stream}];
  if (left < bytes) {
    const InContext context(device);
    std::uint64_t made = 0;
    left = std::max(bytes, kSegment);
    check(driver().allocate(&made, left), "cuMemAlloc");
    start = reinterpret_cast<char*>(made);
  }
  void* const memory = start;
  start += bytes;
  left -= bytes;
  return memory;
}

void CachingAllocator::keep(void* memory, const Block& block) {
  idle_[{block.device, block.stream, block.bytes}].push_back(memory);
}

void CachingAllocator::free(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(memory);
  if (found == used_.end()) return;
  const auto block = found->second;
  used_.erase(found);
  if (block.others.empty()) return keep(memory, block);
  const InContext context(block.device);
  Waiting waiting{.memory = memory, .block = block, .events = {}};
  for (auto* const stream : block.others) {
    check(driver().make_event(&waiting.events.emplace_back(), 2), "cuEventCreate");
    check(driver().record(waiting.events.back(), stream), "cuEventRecord");
  }
  waiting_.push_back(std::move(waiting));
}

void CachingAllocator::record(void* memory, void* stream) {
  const std::lock_guard lock(mutex_);
  auto found = used_.upper_bound(memory);
  if (found == used_.begin()) return;
  auto& block = std::prev(found)->second;
  if (stream != block.stream) block.others.push_back(stream);
}

/// Under the lock.
void CachingAllocator::sweep() {
  std::erase_if(waiting_, [this](const Waiting& waiting) {
    const bool done = std::all_of(waiting.events.begin(), waiting.events.end(),
                                  [](void* event) { return driver().query(event) == 0; });
    if (!done) return false;
    for (auto* const event : waiting.events) static_cast<void>(driver().destroy_event(event));
    keep(waiting.memory, waiting.block);
    return true;
  });
}

}  // namespace horo::torch_device
