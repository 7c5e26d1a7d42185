// SPDX-License-Identifier: Apache-2.0
// The first bytes of a board: the only part that an agent touches. A board is one memfd per host
// and epoch, made by the agent and inherited by the ranks of that host (HORO_BOARD_FD), or made by
// the host's first rank and handed over. Behind the header lie the runtime's tables and arenas,
// which the first rank that attaches lays out.
//
// Content is another process's data: validated, never asserted. A board is never repaired: the
// first death poisons it for good, and the next epoch gets a new memfd and nonce.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/futex.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"

namespace horo {

inline constexpr std::uint64_t kBoardMagic = 0x31304f524f48ULL;  // "HORO01", little endian
inline constexpr std::uint32_t kBoardVersion = 1;
inline constexpr int kMaxLocalRanks = 1024;

/// Life of one local rank on a board. Only the rank moves itself up to `detached`; only who
/// watches it (the agent, or its peers) writes `dead`.
enum class RankState : std::uint32_t {
  absent = 0,
  attached = 1,
  leaving = 2,
  detached = 3,
  dead = 4
};

/// Why a board is poisoned.
enum class LossCause : std::uint8_t {
  none = 0,
  exited = 1,        ///< detail: exit code
  signalled = 2,     ///< detail: signal number
  host_lost = 3,     ///< no heartbeat (detail: milliseconds), or its agent is gone
  unresponsive = 4,  ///< did not let go of peers' memory in time; killed
  aborted = 5,       ///< the launcher stops the job (signal, time limit)
  corrupted = 6,     ///< the board's content made no sense
  vanished = 7,      ///< ended in a way that its peers cannot know
  stalled = 8,       ///< kept the others waiting for longer than they may
  cut_off = 9,       ///< lives, but cannot exchange tensors with other hosts any more
};

inline constexpr LossCause kLastLossCause = LossCause::cut_off;

struct Poison {
  Rank rank{-1};  ///< Global rank that was lost first; -1 when no rank is to blame.
  LossCause cause = LossCause::none;
  std::uint32_t detail = 0;

  friend bool operator==(const Poison&, const Poison&) = default;
};

/// "killed by signal 9 (SIGKILL)", "exited with code 1", ...
std::string describe(const Poison& poison);

/// Bits that sleepers on a bell give to the futex, so that a ringer can choose.
inline constexpr std::uint32_t kForeground = 1;  ///< A caller's thread inside a wait.
inline constexpr std::uint32_t kBackground = 2;  ///< The runtime's own thread.

struct alignas(128) RankSlot {
  std::atomic<RankState> state;
  std::atomic<std::uint32_t> pid;
  std::atomic<std::uint32_t> poison_ack;  ///< 1: this rank touches no peer's memory any more.
  std::atomic<std::uint32_t> kill_sent;   ///< 1: a peer has ended it, since it did not say that.
  std::atomic<std::uint32_t> heard;  ///< 1 + the rank whose loss its operations end by; 0: none.
  alignas(64) futex::Word bell;
  std::atomic<std::uint32_t> foreground_sleepers;
  std::atomic<std::uint32_t> background_sleepers;
};

struct BoardHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t local_size;
  std::uint64_t nonce;  ///< Of the job and epoch; a rank compares it with HORO_BOARD_NONCE.
  std::uint64_t epoch;
  std::array<std::uint8_t, 32> secret;  ///< The job's; authenticates key-value clients.

  alignas(64) std::atomic<std::uint64_t> poison;  ///< Packed Poison; 0 while healthy.
  std::atomic<std::uint32_t> poison_claimed;      ///< First to set it writes `poison_host`.
  std::array<char, 64> poison_host;               ///< Host of the lost rank, NUL terminated.

  alignas(64) futex::Word body_state;  ///< 0 not laid out, 1 in progress, 2 ready.
  std::uint64_t body_bytes;            ///< Size of the whole memfd once `body_state` is 2.

  alignas(128) std::array<RankSlot, 1> first_slot;  ///< `local_size` of them follow each other.

  RankSlot& slot(LocalRank r) { return first_slot.data()[r.index()]; }

  const RankSlot& slot(LocalRank r) const { return first_slot.data()[r.index()]; }

  /// Bytes of the header for `local_size` ranks, a multiple of the page size.
  static std::size_t bytes(int local_size);
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct BoardSpec {
  int local_size = 1;
  std::uint64_t nonce = 0;
  Epoch epoch{1};
  std::array<std::uint8_t, 32> secret{};
};

/// A fresh memfd with a formatted header; the caller owns the descriptor, which is close-on-exec.
/// Fails: out_of_memory, unavailable, io.
Result<int> make_board(const BoardSpec& spec);

/// Maps the header of `fd`, shared and writable, after checking magic, version and sizes.
/// Unmap with unmap_board_header. Fails: protocol, version_mismatch, io.
Result<BoardHeader*> map_board_header(int fd);
void unmap_board_header(BoardHeader* header);

/// Poisons the board (the first call wins) and wakes every sleeper. Thread: any. Blocks: no.
void poison_board(BoardHeader& header, const Poison& poison, std::string_view host);

/// The poison, cause none while the board is healthy.
Poison poison_of(const BoardHeader& header);

/// Wakes one sleeper of rank `r`, a caller's thread in preference. No system call when nobody
/// sleeps.
void ring(RankSlot& slot);

/// Wakes all sleepers of all ranks.
void ring_all(BoardHeader& header);

}  // namespace horo
