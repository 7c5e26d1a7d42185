// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/open_device.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <unistd.h>
#include <utility>

namespace horo::runtime {

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "(unknown)";
}

}  // namespace

OpenDevice::~OpenDevice() {
  turns_ = {};  // Which gives events back.
  clock_.reset();
  std::vector<Block> blocks;
  {
    const MutexLock lock(mutex_);
    blocks.swap(blocks_);
  }
  for (const auto& block : blocks) device_->free(block.memory);
  blocks.clear();  // Which gives events back.
  const MutexLock lock(mutex_);
  for (auto* const event : events_) device_->destroy_event(event);
}

Result<SharedEvent> OpenDevice::event() {
  const auto share = [this](EventHandle event) {
    return SharedEvent(event, [this](EventHandle idle) {
      const MutexLock lock(mutex_);
      events_.push_back(idle);
    });
  };
  {
    const MutexLock lock(mutex_);
    if (!events_.empty()) {
      auto* const event = events_.back();
      events_.pop_back();
      return share(event);
    }
  }
  HORO_TRY(auto* const event, device_->make_event());
  return share(event);
}

bool OpenDevice::is_idle(const Block& block) const {
  return std::all_of(block.used.begin(), block.used.end(), [this](const SharedEvent& event) {
    const auto done = device_->done(event.get());
    return done && *done;
  });
}

Result<SharedResult> OpenDevice::result(std::uint64_t bytes) {
  auto made = std::make_unique<DeviceResult>();
  made->bytes_ = std::bit_ceil(std::max(bytes, kLeastBlock));
  {
    const MutexLock lock(mutex_);
    const auto fits = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& block) {
      return block.bytes >= bytes && block.bytes <= 2 * made->bytes_;
    });
    if (fits != blocks_.end()) {
      made->memory_ = fits->memory;
      made->bytes_ = fits->bytes;
      made->before_ = std::move(fits->used);
      blocks_.erase(fits);
    }
  }
  if (made->memory_ == nullptr) {
    auto memory = device_->allocate(made->bytes_);
    if (!memory) return Failure(named(memory.error()));
    made->memory_ = *memory;
  }
  return SharedResult(made.release(), [this](DeviceResult* result) { put_back(result); });
}

void OpenDevice::put_back(DeviceResult* result) {
  const std::unique_ptr<DeviceResult> owner(result);
  Block block{.memory = result->memory_, .bytes = result->bytes_, .used = {}};
  block.used = std::move(result->after_);
  // The user before may still read: this one has not waited for it when it failed or was given up.
  for (auto& event : result->before_) {
    const auto done = device_->done(event.get());
    if (!done || !*done) block.used.push_back(std::move(event));
  }
  Block surplus;
  {
    const MutexLock lock(mutex_);
    blocks_.push_back(std::move(block));
    if (blocks_.size() > kMostBlocks) {
      const auto idle = std::find_if(blocks_.begin(), blocks_.end(),
                                     [this](const Block& kept) { return is_idle(kept); });
      if (idle != blocks_.end()) {
        surplus = std::move(*idle);
        blocks_.erase(idle);
      }
    }
  }
  if (surplus.memory != nullptr) device_->free(surplus.memory);
}

Error OpenDevice::named(const Error& error) const {
  static const auto host = host_name();
  return fail(error.code, "device {} of host {}: {}", index(), host, error.message).take();
}

Result<OpenDevice*> Devices::open(int index) {
  const MutexLock lock(mutex_);
  for (const auto& device : devices_) {
    if (device->index() == index) return device.get();
  }
  HORO_TRY_STATUS(load_());
  HORO_TRY(auto device, open_(index));
  return devices_.emplace_back(std::make_unique<OpenDevice>(std::move(device))).get();
}

}  // namespace horo::runtime
