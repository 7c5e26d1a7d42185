// SPDX-License-Identifier: Apache-2.0
// What lies in the memory of a host outside the regions of its process sets, and where.
// docs/design/board.md describes the protocol.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/board_header.hpp"
#include "runtime/host/board_layout.hpp"

namespace horo::runtime {

/// How a rank's progress is driven. Only `Waker` writes it.
namespace drive {
/// No thread drives it: the runtime's thread sleeps, or is about to.
inline constexpr std::uint32_t kNobody = 0;
/// A thread drives it and looks for news by itself: it needs no wake-up.
inline constexpr std::uint32_t kAwake = 1;
/// The thread that drives it sleeps on the rank's bell.
inline constexpr std::uint32_t kAsleep = 2;
}  // namespace drive

/// For which news a sleeping driver wants to be woken. Only `Waker` writes it.
namespace interest {
/// New log entries, ready tensors, ranks that come and go.
inline constexpr std::uint32_t kEntries = 1;
/// Progress of peers inside an entry.
inline constexpr std::uint32_t kChunks = 2;
}  // namespace interest

/// One rank of this host.
struct alignas(128) HostRank {
  std::atomic<std::uint32_t> drive;
  std::atomic<std::uint32_t> interest;
  std::atomic<std::uint32_t>
      called;  ///< 1: a peer rings, and others need not. Only `Waker` writes.
  /// Reasons why the rank's own thread has to run every entry soon: callbacks are in use, callers
  /// sleep without the progress token. Only `Waker` writes it.
  std::atomic<std::uint32_t> own_thread_needs;
  std::atomic<std::int32_t> global_rank;
  std::atomic<std::uint32_t> core;  ///< 1 + the core of its driver when it looked last; 0: unknown.

  // For reports of why this rank keeps others waiting:
  alignas(64) std::atomic<std::uint64_t> last_call;  ///< Submit, or end of a long wait: ns.
  std::atomic<std::uint64_t> waits_for;  ///< Set << 32 | tensor + 1 that a caller waits for; or 0.

  /// Cores that the rank may run on, a bit each; all 0: unknown. Written before the rank attaches.
  alignas(64) std::array<std::atomic<std::uint64_t>, 16> cores;
};

/// The state of a region; all zero while no rank uses it.
struct RegionState {
  futex::Word laid_out;              ///< 0 no, 1 in progress, 2 yes, 3 failed.
  std::atomic<std::uint32_t> users;  ///< Ranks that have it mapped.
};

struct HostBody {
  BoardParams params;

  // Only `Waker` writes these two.
  alignas(128) std::atomic<std::uint32_t> chunk_sleepers;  ///< Ranks asleep inside an entry.
  std::atomic<std::uint32_t> waiters;  ///< Callers asleep in a wait, and callbacks that are due.

  std::atomic<std::uint32_t> gone;  ///< Ranks that have detached.

  std::atomic<std::uint64_t> last_place;  ///< Only StartPlaces uses it.

  /// 0: none; 1: a rank writes `stall_text`; 2: it is complete. The rank then poisons the board,
  /// with cause stalled, unless another one has done so meanwhile.
  std::atomic<std::uint32_t> stall_written;
  std::array<char, 2048> stall_text;  ///< NUL terminated.

  std::array<RegionState, kMostRegions> regions;
};

/// Offsets of all that lies outside the regions. Pure.
struct HostLayout {
  std::uint64_t body = 0;
  std::uint64_t ranks = 0;  ///< HostRank[local_size]
  std::uint64_t arenas = 0;
  /// From one arena to the next: a page more than an arena. Otherwise tensors at the same place of
  /// two arenas would differ in high address bits alone. A first-level cache that finds its ways by
  /// a hash of the address (AMD Zen) takes such lines for one another: a sum in place took 1.5
  /// times as long.
  std::uint64_t arena_stride = 0;
  std::uint64_t regions = 0;
  std::uint64_t region_bytes = 0;  ///< Each; enough for a set of any ranks of the host.
  std::uint64_t total = 0;

  static HostLayout of(const BoardParams& params);
};

}  // namespace horo::runtime
