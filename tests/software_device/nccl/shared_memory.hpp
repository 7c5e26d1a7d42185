// SPDX-License-Identifier: Apache-2.0
// What the ranks of a communicator share: a file that the unique id names. Each rank has a slot in
// which it shows a piece of its input to all, and each pair of ranks a mailbox for messages.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace horo::software_nccl {

inline constexpr int kMostRanks = 64;
inline constexpr std::size_t kSlotBytes = std::size_t{256} << 10U;
inline constexpr std::size_t kMailBytes = std::size_t{64} << 10U;
inline constexpr std::size_t kMostOthers = 12;

enum class Kind : std::uint8_t { all_reduce, reduce, broadcast, all_gather, reduce_scatter, send };

/// Collectives of another communicator that a rank had started on the same device.
struct Other {
  std::uint64_t communicator = 0;
  std::uint64_t started = 0;
};

/// One call, as other ranks see it. They compare it with their own.
struct Operation {
  Kind kind = Kind::all_reduce;
  std::uint8_t type = 0;
  std::uint8_t op = 0;
  std::int32_t root = 0;  ///< The sender of a message.
  std::uint64_t count = 0;
  std::uint32_t others = 0;
  std::array<Other, kMostOthers> other{};
};

struct Slot {
  std::atomic<std::uint64_t> shown{0};  ///< Pieces shown so far.
  std::atomic<std::uint64_t> seen{0};   ///< Steps in which this rank has read all slots.
  Operation operation;
  std::byte data[kSlotBytes];
};

struct Mailbox {
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::uint64_t> received{0};
  Operation operation;
  std::byte data[kMailBytes];
};

struct Member {
  std::atomic<std::uint32_t> joined{0};
  std::atomic<std::uint32_t> aborted{0};
  std::uint64_t device = 0;  ///< Names the device among those of all hosts.
};

/// Thread: any; the slots and mailboxes by the protocol in launch.cpp.
class SharedMemory {
 public:
  /// A name for a new communicator.
  static std::string new_name();

  /// Null: the file cannot be made. The file is removed when all ranks have joined.
  static std::unique_ptr<SharedMemory> open(const std::string& name, int ranks, int rank);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// False when this rank has joined already.
  bool join(std::uint64_t device);
  bool all_joined() const;

  Member& member(int rank) const { return head().members[static_cast<std::size_t>(rank)]; }

  Slot& slot(int rank) const;
  Mailbox& mailbox(int from, int to) const;

  /// Whether the process of a rank that has joined has ended.
  bool has_ended(int rank) const;

  /// Wakes all ranks.
  void ring() const;

  std::uint32_t bell() const { return head().bell.load(std::memory_order_acquire); }

  /// Returns when the bell is no longer `heard`, or after some milliseconds.
  void await_bell(std::uint32_t heard) const;

 private:
  struct Head {
    std::atomic<std::uint32_t> bell{0};
    Member members[kMostRanks];
  };

  SharedMemory() = default;

  Head& head() const { return *reinterpret_cast<Head*>(memory_); }

  bool map();

  std::string path_;
  int ranks_ = 0;
  int rank_ = 0;
  int file_ = -1;
  std::size_t size_ = 0;
  std::byte* memory_ = nullptr;
};

}  // namespace horo::software_nccl
