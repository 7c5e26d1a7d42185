// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/host_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "base/deadline.hpp"

namespace horo::runtime {

namespace {

Result<void*> map_at(int fd, std::uint64_t offset, std::uint64_t bytes, int protection) {
  void* memory =
      mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) {
    return fail_errno(errno, fmt::format("mapping {} bytes of address space (lower "
                                         "HORO_ARENA_SIZE or raise 'ulimit -v')",
                                         bytes));
  }
  // A forked child must neither see nor keep alive the memory that ranks share.
  madvise(memory, bytes, MADV_DONTFORK);
  madvise(memory, bytes, MADV_DONTDUMP);
  return memory;
}

/// The least multiple of kMapUnit that is not below `bytes`.
std::uint64_t mappable(std::uint64_t bytes) {
  return (bytes + kMapUnit - 1) / kMapUnit * kMapUnit;
}

/// The rank that could not lay out the board has the reason. It is to end first, so that the job's
/// report names it and not one that fails because of it.
void await_end_of_failed(const BoardHeader& header) {
  const auto& clock = SteadyClock::instance();
  const auto limit = Deadline::in(clock, std::chrono::seconds(1));
  while (poison_of(header).cause == LossCause::none && !limit.expired(clock.now()))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace

HostLayout HostLayout::of(const BoardParams& p) {
  HostLayout l;
  std::uint64_t at = BoardHeader::bytes(static_cast<int>(p.local_size));
  const auto take = [&at](std::uint64_t bytes) {
    const auto here = at;
    at += paged(bytes);
    return here;
  };
  l.body = take(sizeof(HostBody));
  l.ranks = take(p.local_size * sizeof(HostRank));
  l.arena_stride = p.arena_bytes + kPage;
  l.arenas = take(p.local_size * l.arena_stride);
  // A set of fewer members may need more, because chunks and payloads shrink in steps.
  auto set = p;
  for (set.local_size = 1; set.local_size <= std::min<std::uint32_t>(p.local_size, kMostLocalRanks);
       ++set.local_size)
    l.region_bytes = std::max(l.region_bytes, mappable(BoardLayout::of(set).total));
  at = mappable(at);
  l.regions = take(kMostRegions * l.region_bytes);
  l.total = at;
  return l;
}

Result<std::unique_ptr<HostMemory>> HostMemory::attach(int fd, LocalRank me, Rank global,
                                                       const BoardParams& params) {
  std::unique_ptr<HostMemory> memory(new HostMemory());
  memory->me_ = me;
  memory->fd_ = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (memory->fd_ < 0) return fail_errno(errno, fmt::format("board descriptor {}", fd));
  HORO_TRY_STATUS(memory->meet_layout(params));
  HORO_TRY_STATUS(memory->map());
  memory->my_rank().global_rank.store(global.value(), std::memory_order_relaxed);
  return memory;
}

Status HostMemory::meet_layout(const BoardParams& params) {
  HORO_TRY(const auto header, map_board_header(fd_));
  Status laid_out = [&]() -> Status {
    if (me_.value() < 0 || me_.value() >= header.local_size()) {
      return fail(Errc::protocol, "local rank {} on a board for {} ranks", me_,
                  header.local_size());
    }
    auto wanted = params;
    wanted.local_size = static_cast<std::uint32_t>(header.local_size());
    auto& state = header->body_state;
    std::uint32_t fresh = 0;
    if (state.compare_exchange_strong(fresh, 1, std::memory_order_acq_rel)) {
      auto status = lay_out(wanted);
      state.store(status ? 2 : 3, std::memory_order_seq_cst);
      futex::wake(state);
      return status;
    }
    while (state.load(std::memory_order_acquire) == 1) {
      if (poison_of(*header).cause != LossCause::none)
        return fail(Errc::peer_lost, "a rank ended while the board was made");
      futex::wait(state, 1, std::chrono::milliseconds(100));
    }
    if (state.load(std::memory_order_acquire) == 2) return {};
    await_end_of_failed(*header);
    return fail(Errc::out_of_memory,
                "another rank could not lay out the board; its message has the reason");
  }();
  params_.local_size = static_cast<std::uint32_t>(header.local_size());
  unmap_board_header(header);
  return laid_out;
}

Status HostMemory::lay_out(const BoardParams& params) {
  HORO_TRY_STATUS(validate(params));
  const auto layout = HostLayout::of(params);
  // Beyond this limit ftruncate() kills the process with SIGXFSZ.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < layout.total) {
    return fail(Errc::resource_exhausted,
                "files may have {} bytes here, the board of shared memory needs {}, most of which "
                "stay empty; raise ulimit -f to {} or unlimited",
                limit.rlim_cur, layout.total, (layout.total + 1023) / 1024);
  }
  if (ftruncate(fd_, static_cast<off_t>(layout.total)) != 0)
    return fail_errno(errno, "sizing the board");
  HORO_TRY_STATUS(seal_board_size(fd_));
  HORO_TRY_STATUS(allocate(0, layout.arenas));
  HORO_TRY(void* const memory, map_at(fd_, layout.body, sizeof(HostBody), PROT_READ | PROT_WRITE));
  static_cast<HostBody*>(memory)->params = params;
  munmap(memory, sizeof(HostBody));
  return {};
}

Status HostMemory::map() {
  // The place of the body depends on the number of ranks only; the rest follows from its
  // parameters.
  const auto body_at = HostLayout::of(params_).body;
  HORO_TRY(void* const body, map_at(fd_, body_at, sizeof(HostBody), PROT_READ));
  const auto ranks = params_.local_size;
  params_ = static_cast<const HostBody*>(body)->params;
  munmap(body, sizeof(HostBody));
  HORO_TRY_STATUS(validate(params_).context("the board's content"));
  if (params_.local_size != ranks) {
    return fail(Errc::protocol, "the board is for {} ranks, its parameters are for {}", ranks,
                params_.local_size);
  }
  layout_ = HostLayout::of(params_);

  struct stat status {};

  if (fstat(fd_, &status) != 0 || static_cast<std::uint64_t>(status.st_size) < layout_.total) {
    return fail(Errc::protocol, "the board holds {} bytes, its parameters ask for {}",
                status.st_size, layout_.total);
  }
  inode_ = status.st_ino;
  HORO_TRY(void* const memory, map_at(fd_, 0, layout_.regions, PROT_READ | PROT_WRITE));
  base_ = static_cast<std::byte*>(memory);
  board_ = BoardView(*reinterpret_cast<BoardHeader*>(base_), local_size());
  body_ = reinterpret_cast<HostBody*>(base_ + layout_.body);
  ranks_ = reinterpret_cast<HostRank*>(base_ + layout_.ranks);
  waker_ = Waker(board_, *body_, ranks_, me_);
  peer_release_.emplace(*board_, me_);
  return {};
}

HostMemory::~HostMemory() {
  if (base_ != nullptr) munmap(base_, layout_.regions);
  if (fd_ >= 0) close(fd_);
}

Result<std::byte*> HostMemory::map_region(std::size_t index) {
  HORO_TRY(void* const memory, map_at(fd_, layout_.regions + index * layout_.region_bytes,
                                      layout_.region_bytes, PROT_READ | PROT_WRITE));
  return static_cast<std::byte*>(memory);
}

void HostMemory::unmap_region(std::size_t index, std::byte* base, bool counted) {
  munmap(base, layout_.region_bytes);
  auto& region = body_->regions[index];
  if (!counted || region.users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  release(layout_.regions + index * layout_.region_bytes, layout_.region_bytes);
  region.laid_out.store(0, std::memory_order_release);
}

void HostMemory::forget_failed_regions() {
  for (std::size_t i = 0; i < body_->regions.size(); ++i) {
    std::uint32_t failed = 3;
    if (!body_->regions[i].laid_out.compare_exchange_strong(failed, 1, std::memory_order_acq_rel))
      continue;
    release(layout_.regions + i * layout_.region_bytes, layout_.region_bytes);
    body_->regions[i].laid_out.store(0, std::memory_order_release);
  }
}

bool HostMemory::say_stall(std::string_view text) {
  std::uint32_t none = 0;
  if (!body_->stall_written.compare_exchange_strong(none, 1, std::memory_order_acq_rel))
    return false;
  text = text.substr(0, body_->stall_text.size() - 1);
  std::memcpy(body_->stall_text.data(), text.data(), text.size());
  body_->stall_written.store(2, std::memory_order_release);
  return true;
}

Status HostMemory::allocate(std::uint64_t offset, std::uint64_t bytes) {
  int error = 0;
  do {
    error = posix_fallocate(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error == 0) return {};
  return fail(Errc::out_of_memory,
              "{} bytes of shared memory cannot be allocated; free memory or ask for less", bytes);
}

void HostMemory::release(std::uint64_t offset, std::uint64_t bytes) {
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
}

std::uint64_t HostMemory::offset_in_my_arena(const void* p, std::uint64_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  const auto start = reinterpret_cast<std::uintptr_t>(base_) + my_arena();
  if (at < start || at - start > params_.arena_bytes || bytes > params_.arena_bytes - (at - start))
    return 0;
  return at - reinterpret_cast<std::uintptr_t>(base_);
}

std::byte* HostMemory::peer_memory(LocalRank r, std::uint64_t offset, std::uint64_t bytes) {
  const auto start = layout_.arenas + r.index() * layout_.arena_stride;
  if (offset < start || offset - start > params_.arena_bytes ||
      bytes > params_.arena_bytes - (offset - start)) {
    return nullptr;
  }
  return base_ + offset;
}

}  // namespace horo::runtime
