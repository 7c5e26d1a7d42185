// SPDX-License-Identifier: Apache-2.0
// What one rank shares with the others of its host: slots of device memory, events, and counters in
// host memory.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/driver/shared_device.hpp"

namespace horo::runtime::ipc {

inline constexpr std::size_t kSlots = 2;
inline constexpr std::uint64_t kSlotBytes = std::uint64_t{4} << 20U;

/// Pieces that a rank has put into its slots, and that it has read from all slots. The calls that
/// record the events of a piece come before its count.
struct Counters {
  std::atomic<std::uint64_t> packed{0};
  std::atomic<std::uint64_t> reduced{0};
};

/// One rank's slots, in its own process or as another one sees them. Thread: one at a time.
class Slots {
 public:
  /// Allocates them. Fails: as SharedDevice; out_of_memory.
  static Result<std::unique_ptr<Slots>> make(Device& device, const SharedDevice& shared);

  /// Opens those of another process. Fails: as SharedDevice; protocol (`offer` is none);
  /// peer_lost (its process has ended).
  static Result<std::unique_ptr<Slots>> open(Device& device, const SharedDevice& shared,
                                             const std::string& offer);
  ~Slots();
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  /// Their process has ended. False for the own ones, and where the kernel cannot tell.
  bool ended() const;

  /// Bytes by which other processes open them.
  Result<std::string> offer() const;

  void* slot(std::uint64_t piece) const {
    return static_cast<std::byte*>(memory_) + piece % kSlots * kSlotBytes;
  }

  EventHandle packed_event(std::uint64_t piece) const { return packed_[piece % kSlots]; }

  EventHandle reduced_event(std::uint64_t piece) const { return reduced_[piece % kSlots]; }

  Counters& counters() const { return *counters_; }

 private:
  Slots(Device& device, const SharedDevice& shared, bool own)
      : device_(device), shared_(shared), own_(own) {}

  Status map(UniqueFd file);

  Device& device_;
  const SharedDevice shared_;
  const bool own_;
  void* memory_ = nullptr;
  std::array<EventHandle, kSlots> packed_{};
  std::array<EventHandle, kSlots> reduced_{};
  UniqueFd file_;
  UniqueFd process_;
  Counters* counters_ = nullptr;
};

}  // namespace horo::runtime::ipc
