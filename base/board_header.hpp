// SPDX-License-Identifier: Apache-2.0
// The first bytes of a board, and the only part that an agent may access. A board is one memfd per
// host and epoch. The agent makes it and the ranks of the host inherit it (HORO_BOARD_FD), or the
// host's first rank makes it and hands it over. The runtime's tables and arenas follow the header;
// the first rank that attaches lays them out.
//
// The content is written by other processes, so it is validated and never asserted. A board is
// never repaired: the first death poisons it for good, and the next epoch gets a new memfd and
// nonce.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bell.hpp"
#include "base/futex.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"

namespace horo {

inline constexpr std::uint64_t kBoardMagic = 0x31304f524f48ULL;  // "HORO01", little endian
/// Raised with every change of the layout of a board; board_version_test.cpp notices one.
inline constexpr std::uint32_t kBoardVersion = 3;
inline constexpr int kMaxLocalRanks = 1024;

/// Parts of a board that are mapped by themselves begin at multiples of this. It is a multiple of
/// the page size of any kernel: those of aarch64 have pages of 4, 16 or 64 KiB.
#if defined(__aarch64__)
inline constexpr std::size_t kMapUnit = 65536;
#else
inline constexpr std::size_t kMapUnit = 4096;
#endif

/// Life cycle of a local rank on a board. The rank itself writes the states up to `detached`; only
/// the process that watches it (the agent or a peer) writes `dead`.
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
  exited = 1,          ///< detail: exit code
  signalled = 2,       ///< detail: signal number
  host_lost = 3,       ///< no heartbeat (detail: milliseconds), or its agent ended
  unresponsive = 4,    ///< did not release its peers' memory in time, and was killed
  aborted = 5,         ///< the launcher stopped the job (signal, timeout)
  corrupted = 6,       ///< the board's content was invalid
  vanished = 7,        ///< ended, and its peers cannot know how
  stalled = 8,         ///< kept the others waiting for longer than allowed
  cut_off = 9,         ///< still runs, but cannot exchange tensors with other hosts
  given_up = 10,       ///< the launcher of an elastic job has given up this generation
  device_failed = 11,  ///< still runs, but its GPU does not
};

inline constexpr LossCause kLastLossCause = LossCause::device_failed;

struct Poison {
  Rank rank{-1};  ///< Global rank that was lost first; -1 if no rank caused the loss.
  LossCause cause = LossCause::none;
  std::uint32_t detail = 0;

  friend bool operator==(const Poison&, const Poison&) = default;
};

/// "killed by signal 9 (SIGKILL)", "exited with code 1", ...
std::string describe(const Poison& poison);

/// The launcher of an elastic job tells the ranks that members of the job should change: hosts or
/// workers are there, or are to go.
struct Notice {
  static constexpr std::uint32_t kRemoved = 1;
  static constexpr std::uint32_t kAdded = 2;
  static constexpr std::uint64_t kMostSequence = (std::uint64_t{1} << 56U) - 1;

  std::uint64_t sequence = 0;  ///< Rises from 1; 0: none so far.
  std::uint32_t flags = 0;     ///< kRemoved, kAdded or both: what the launcher wants to change.

  friend bool operator==(const Notice&, const Notice&) = default;
};

struct alignas(128) RankSlot {
  std::atomic<RankState> state;
  std::atomic<std::uint32_t> pid;
  std::atomic<std::uint32_t> poison_ack;  ///< 1: this rank no longer accesses its peers' memory.
  /// 1: a peer has killed it because it did not set `poison_ack`.
  std::atomic<std::uint32_t> kill_sent;
  std::atomic<std::uint32_t> heard;  ///< 1 + the lost rank that its operations report; 0: none.
  alignas(64) Bell bell;
};

struct BoardHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t local_size;
  /// Differs for each job and epoch; a rank compares it with HORO_BOARD_NONCE.
  std::uint64_t nonce;
  std::uint64_t epoch;
  /// The job's secret, which authenticates key-value clients.
  std::array<std::uint8_t, 32> secret;

  alignas(64) std::atomic<std::uint64_t> poison;  ///< Packed Poison; 0 while healthy.
  /// The first process that sets it writes `poison_host`.
  std::atomic<std::uint32_t> poison_claimed;
  std::array<char, 64> poison_host;  ///< Host of the lost rank, NUL terminated.

  /// Packed Notice of an elastic job; 0 before the first. Only the agent writes it.
  alignas(64) std::atomic<std::uint64_t> notice;

  alignas(64) futex::Word body_state;  ///< 0 not laid out, 1 in progress, 2 ready.
  std::uint64_t body_bytes;            ///< Size of the whole memfd once `body_state` is 2.

  /// Followed by the other `local_size - 1` slots.
  alignas(128) std::array<RankSlot, 1> first_slot;

  RankSlot& slot(LocalRank r) { return first_slot.data()[r.index()]; }

  const RankSlot& slot(LocalRank r) const { return first_slot.data()[r.index()]; }

  /// Bytes of the header for `local_size` ranks, a multiple of kMapUnit.
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

/// A mapped header, and how many ranks it is for. That number is this process's own: any rank can
/// overwrite the one in the header.
class BoardView {
 public:
  BoardView() = default;

  BoardView(BoardHeader& header, int local_size) : header_(&header), local_size_(local_size) {}

  int local_size() const { return local_size_; }

  BoardHeader* operator->() const { return header_; }

  BoardHeader& operator*() const { return *header_; }

 private:
  BoardHeader* header_ = nullptr;
  int local_size_ = 0;
};

/// Maps the header of `fd`, shared and writable, after checking magic, version, sizes and that no
/// process can shrink the memory. Unmap with unmap_board_header. Fails: protocol, version_mismatch,
/// io.
Result<BoardView> map_board_header(int fd);
void unmap_board_header(const BoardView& board);

/// No process can change the size of the board from now on. Fails: io.
Status seal_board_size(int fd);

/// Poisons the board and wakes all waiters; only the first call has an effect. Thread: any. Blocks:
/// no.
void poison_board(const BoardView& board, const Poison& poison, std::string_view host);

/// The poison; its cause is none while the board is healthy.
Poison poison_of(const BoardHeader& header);

/// Sets the notice if it is newer than the one there, and wakes all waiters. Only the low byte of
/// the flags is kept. Thread: any. Blocks: no.
void post_notice(const BoardView& board, const Notice& notice);

/// The latest notice; no system call. Thread: any.
Notice notice_of(const BoardHeader& header);

/// Wakes all waiters of all ranks.
void ring_all(const BoardView& board);

}  // namespace horo
