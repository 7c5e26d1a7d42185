// SPDX-License-Identifier: Apache-2.0
// Mapping, memory and wake-ups; agreement is in board_cut.cpp, names in board_directory.cpp.
#include "runtime/coordinator/board.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace horo::runtime {

Result<std::unique_ptr<Board>> Board::attach(int fd, LocalRank me, Rank global,
                                             const BoardParams& params) {
  std::unique_ptr<Board> board(new Board());
  board->me_ = me;
  board->fd_ = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (board->fd_ < 0) return fail_errno(errno, fmt::format("board descriptor {}", fd));
  HORO_TRY(BoardHeader* const header, map_board_header(board->fd_));
  const auto local_size = header->local_size;
  Status laid_out = [&]() -> Status {
    if (me.index() >= local_size) {
      return fail(Errc::protocol, "local rank {} on a board for {} ranks", me, local_size);
    }
    auto wanted = params;
    wanted.local_size = local_size;
    auto& state = header->body_state;
    std::uint32_t fresh = 0;
    if (state.compare_exchange_strong(fresh, 1, std::memory_order_acq_rel)) {
      auto status = board->lay_out(wanted);
      state.store(status ? 2 : 3, std::memory_order_seq_cst);
      futex::wake(state);
      return status;
    }
    while (state.load(std::memory_order_acquire) == 1) {
      if (poison_of(*header).cause != LossCause::none)
        return fail(Errc::peer_lost, "a rank ended while the board was made");
      futex::wait(state, 1, std::chrono::milliseconds(100));
    }
    if (state.load(std::memory_order_acquire) != 2) {
      return fail(Errc::out_of_memory, "another rank could not lay out the board");
    }
    return {};
  }();
  unmap_board_header(header);
  HORO_TRY_STATUS(std::move(laid_out));
  HORO_TRY_STATUS(board->map(board->fd_));
  board->area(me.value()).global_rank.store(global.value(), std::memory_order_relaxed);
  return board;
}

Status Board::lay_out(const BoardParams& params) {
  HORO_TRY_STATUS(validate(params));
  const auto layout = BoardLayout::of(params);
  if (ftruncate(fd_, static_cast<off_t>(layout.total)) != 0)
    return fail_errno(errno, "sizing the board");
  if (const int error = posix_fallocate(fd_, 0, static_cast<off_t>(layout.fixed_bytes()));
      error != 0) {
    return fail_errno(error, fmt::format("allocating {} bytes of shared memory for the board",
                                         layout.fixed_bytes()));
  }
  void* memory = mmap(nullptr, sizeof(BoardBody), PROT_READ | PROT_WRITE, MAP_SHARED, fd_,
                      static_cast<off_t>(layout.body));
  if (memory == MAP_FAILED) return fail_errno(errno, "mapping the board");
  static_cast<BoardBody*>(memory)->params = params;
  munmap(memory, sizeof(BoardBody));
  return {};
}

Status Board::map(int fd) {
  // The body's place depends on the number of ranks only; its parameters tell the rest.
  HORO_TRY(BoardHeader* const header, map_board_header(fd));
  BoardParams probe;
  probe.local_size = header->local_size;
  unmap_board_header(header);
  const auto body_at = BoardLayout::of(probe).body;
  void* memory =
      mmap(nullptr, sizeof(BoardBody), PROT_READ, MAP_SHARED, fd, static_cast<off_t>(body_at));
  if (memory == MAP_FAILED) return fail_errno(errno, "mapping the board");
  params_ = static_cast<const BoardBody*>(memory)->params;
  munmap(memory, sizeof(BoardBody));
  HORO_TRY_STATUS(validate(params_).context("the board's content"));
  layout_ = BoardLayout::of(params_);

  struct stat status {};

  if (fstat(fd, &status) != 0 || static_cast<std::uint64_t>(status.st_size) < layout_.total) {
    return fail(Errc::protocol, "the board holds {} bytes, its parameters ask for {}",
                status.st_size, layout_.total);
  }
  memory = mmap(nullptr, layout_.total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (memory == MAP_FAILED) {
    return fail_errno(errno, fmt::format("mapping {} bytes of address space for {} ranks (lower "
                                         "HORO_ARENA_SIZE or raise 'ulimit -v')",
                                         layout_.total, params_.local_size));
  }
  // A forked child must not see, or keep alive, what the ranks share.
  madvise(memory, layout_.total, MADV_DONTFORK);
  madvise(memory, layout_.total, MADV_DONTDUMP);
  base_ = static_cast<std::byte*>(memory);
  const auto at = [this](std::uint64_t offset) { return base_ + offset; };
  header_ = reinterpret_cast<BoardHeader*>(base_);
  body_ = reinterpret_cast<BoardBody*>(at(layout_.body));
  ranks_ = reinterpret_cast<RankArea*>(at(layout_.ranks));
  log_ = reinterpret_cast<LogSlot*>(at(layout_.log));
  buckets_ = reinterpret_cast<std::uint32_t*>(at(layout_.buckets));
  ready_ = reinterpret_cast<std::atomic<std::uint32_t>*>(at(layout_.ready));
  pending_ = reinterpret_cast<PendingSlot*>(at(layout_.pending));
  words_ = reinterpret_cast<std::uint64_t*>(at(layout_.words));
  tensors_ = reinterpret_cast<TensorSlot*>(at(layout_.tensors));
  rank_tensors_ = reinterpret_cast<RankTensor*>(at(layout_.rank_tensors));
  return {};
}

Board::~Board() {
  if (base_ != nullptr) munmap(base_, layout_.total);
  if (fd_ >= 0) close(fd_);
}

Rank Board::global_rank(int local_rank) const {
  return Rank{ranks_[local_rank].global_rank.load(std::memory_order_relaxed)};
}

const RankTensor& Board::rank_tensor(TensorId id, int local_rank) const {
  return rank_tensors_[id.index() * params_.local_size + static_cast<std::size_t>(local_rank)];
}

Status Board::allocate(std::uint64_t offset, std::uint64_t bytes) {
  int error = 0;
  do {
    error = posix_fallocate(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error == 0) return {};
  return fail(Errc::out_of_memory,
              "{} bytes of shared memory cannot be had; free memory or ask for less", bytes);
}

void Board::release(std::uint64_t offset, std::uint64_t bytes) {
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
}

std::uint64_t Board::offset_in_my_arena(const void* p, std::uint64_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  const auto start =
      reinterpret_cast<std::uintptr_t>(base_) + layout_.arenas + me_.index() * params_.arena_bytes;
  if (at < start || at - start > params_.arena_bytes || bytes > params_.arena_bytes - (at - start))
    return 0;
  return at - reinterpret_cast<std::uintptr_t>(base_);
}

std::byte* Board::peer_memory(int local_rank, std::uint64_t offset, std::uint64_t bytes) {
  const auto start = layout_.arenas + static_cast<std::uint64_t>(local_rank) * params_.arena_bytes;
  if (offset < start || offset - start > params_.arena_bytes ||
      bytes > params_.arena_bytes - (offset - start)) {
    return nullptr;
  }
  return base_ + offset;
}

int Board::wake(std::uint32_t what, Self self) {
  // The caller has published with a seq_cst store; a sleeper announces itself with a seq_cst store
  // to `drive` and then looks again. In their total order one of the two sees the other.
  if (what == interest::kChunks && body_->chunk_sleepers.load(std::memory_order_seq_cst) == 0)
    return 0;
  int woken = 0;
  for (int r = 0; r < local_size(); ++r) {
    const auto state = ranks_[r].drive.load(std::memory_order_seq_cst);
    if (state == drive::kAwake) continue;
    // Only the thread of its own: a caller who drives and sleeps must hear of it.
    if (state == drive::kNobody && self == Self::spared && r == me_.value()) continue;
    if (state == drive::kAsleep && (ranks_[r].interest.load(std::memory_order_seq_cst) & what) == 0)
      continue;
    if (state == drive::kNobody && (what & interest::kEntries) == 0) continue;
    ring(header_->slot(LocalRank{r}));
    ++woken;
  }
  return woken;
}

int Board::wake_laggards() {
  const auto tail = body_->tail.load(std::memory_order_seq_cst);
  int woken = 0;
  for (int r = 0; r < local_size(); ++r) {
    if (r == me_.value() || ranks_[r].drive.load(std::memory_order_seq_cst) != drive::kNobody)
      continue;
    if (ranks_[r].cursor.load(std::memory_order_seq_cst) == tail) continue;
    ring(header_->slot(LocalRank{r}));
    ++woken;
  }
  return woken;
}

}  // namespace horo::runtime
