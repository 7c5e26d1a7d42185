// SPDX-License-Identifier: Apache-2.0
#include "base/board_header.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace horo {

namespace {

std::uint64_t pack(const Poison& p) {
  const auto rank =
      static_cast<std::uint64_t>(static_cast<std::uint32_t>(p.rank.value() + 1) & 0xffffffU);
  return static_cast<std::uint64_t>(p.cause) << 56U | rank << 32U | p.detail;
}

Poison unpack(std::uint64_t word) {
  return {.rank = Rank{static_cast<int>(word >> 32U & 0xffffffU) - 1},
          .cause = static_cast<LossCause>(word >> 56U),
          .detail = static_cast<std::uint32_t>(word)};
}

}  // namespace

std::string describe(const Poison& poison) {
  switch (poison.cause) {
    case LossCause::none:
      return "healthy";
    case LossCause::exited:
      return fmt::format("exited with code {}", poison.detail);
    case LossCause::signalled: {
      const char* word = sigabbrev_np(static_cast<int>(poison.detail));
      return fmt::format("killed by signal {} (SIG{})", poison.detail,
                         word != nullptr ? word : "?");
    }
    case LossCause::host_lost:
      return poison.detail == 0
                 ? std::string("its host was lost")
                 : fmt::format("its host sent no heartbeat for {} ms", poison.detail);
    case LossCause::unresponsive:
      return "did not respond and was killed";
    case LossCause::aborted:
      return "the job was stopped";
    case LossCause::corrupted:
      return "shared memory content made no sense";
    case LossCause::vanished:
      return "ended without leaving the job";
    case LossCause::stalled:
      return "kept the others waiting for too long";
    case LossCause::cut_off:
      return "lost its connections to other ranks (its own log says how)";
    case LossCause::given_up:
      return "the launcher has given up this generation of the job, or has ended";
    case LossCause::device_failed:
      return "its GPU failed (its own log says how)";
  }
  return "unknown cause";
}

std::size_t BoardHeader::bytes(int local_size) {
  const auto raw = sizeof(BoardHeader) + sizeof(RankSlot) * static_cast<std::size_t>(local_size);
  return (raw + kMapUnit - 1) / kMapUnit * kMapUnit;
}

Result<int> make_board(const BoardSpec& spec) {
  if (spec.local_size < 1 || spec.local_size > kMaxLocalRanks) {
    return fail(Errc::invalid_argument, "{} ranks on one host; allowed are 1 to {}",
                spec.local_size, kMaxLocalRanks);
  }
  const int fd = memfd_create("horo-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return fail_errno(errno, "creating the board (memfd_create)");
  const auto bytes = BoardHeader::bytes(spec.local_size);
  // Allocate, so that a full memory limit is an error here and not a SIGBUS later.
  if (const int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes)); error != 0) {
    close(fd);
    return fail_errno(error, "allocating the board's header");
  }
  // A rank that shrank the board would kill every process that has it mapped, by SIGBUS.
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    const int error = errno;
    close(fd);
    return fail_errno(error, "sealing the board's size");
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    close(fd);
    return fail_errno(error, "mapping the board's header");
  }
  auto* header = static_cast<BoardHeader*>(
      memory);  // A memfd is filled with zeros, so every counter starts at 0.
  header->magic = kBoardMagic;
  header->version = kBoardVersion;
  header->local_size = static_cast<std::uint32_t>(spec.local_size);
  header->nonce = spec.nonce;
  header->epoch = spec.epoch.value();
  header->secret = spec.secret;
  munmap(memory, bytes);
  return fd;
}

Status seal_board_size(int fd) {
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) return {};
  return fail_errno(errno, "sealing the board's size");
}

Result<BoardView> map_board_header(int fd) {
  struct stat status {};

  if (fstat(fd, &status) != 0) return fail_errno(errno, fmt::format("board descriptor {}", fd));
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes < sizeof(BoardHeader)) {
    return fail(Errc::protocol, "board descriptor {} holds {} bytes; this is not a board", fd,
                bytes);
  }
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return fail(Errc::protocol, "board descriptor {} is not a board: it may shrink", fd);
  void* memory = mmap(nullptr, sizeof(BoardHeader), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return fail_errno(errno, "mapping the board's header");
  auto* header = static_cast<BoardHeader*>(memory);
  const auto magic = header->magic;
  const auto version = header->version;
  const auto local_size = header->local_size;
  munmap(memory, sizeof(BoardHeader));
  if (magic != kBoardMagic) return fail(Errc::protocol, "board descriptor {} is not a board", fd);
  if (version != kBoardVersion) {
    return fail(Errc::version_mismatch,
                "the agent's board has version {}, this libhoro wants {}; install the same horo on "
                "launcher and ranks",
                version, kBoardVersion);
  }
  if (local_size < 1 || local_size > static_cast<std::uint32_t>(kMaxLocalRanks) ||
      bytes < BoardHeader::bytes(static_cast<int>(local_size))) {
    return fail(Errc::protocol, "board of {} bytes claims {} local ranks", bytes, local_size);
  }
  memory = mmap(nullptr, BoardHeader::bytes(static_cast<int>(local_size)), PROT_READ | PROT_WRITE,
                MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return fail_errno(errno, "mapping the board's header");
  return BoardView(*static_cast<BoardHeader*>(memory), static_cast<int>(local_size));
}

void unmap_board_header(const BoardView& board) {
  if (board.local_size() != 0) munmap(&*board, BoardHeader::bytes(board.local_size()));
}

void poison_board(const BoardView& board, const Poison& poison, std::string_view host) {
  auto& header = *board;
  if (header.poison_claimed.exchange(1, std::memory_order_acq_rel) == 0) {
    const auto n = std::min(host.size(), header.poison_host.size() - 1);
    std::memcpy(header.poison_host.data(), host.data(), n);
    header.poison.store(pack(poison), std::memory_order_seq_cst);
  }
  ring_all(board);
}

Poison poison_of(const BoardHeader& header) {
  return unpack(header.poison.load(std::memory_order_acquire));
}

void post_notice(const BoardView& board, const Notice& notice) {
  constexpr std::uint64_t kFlagBits = 8;
  constexpr std::uint64_t kFlags = (std::uint64_t{1} << kFlagBits) - 1;
  const auto word = notice.sequence << kFlagBits | (notice.flags & kFlags);
  auto known = board->notice.load(std::memory_order_acquire);
  while (known >> kFlagBits < notice.sequence &&
         !board->notice.compare_exchange_weak(known, word, std::memory_order_seq_cst)) {
  }
  ring_all(board);
}

Notice notice_of(const BoardHeader& header) {
  const auto word = header.notice.load(std::memory_order_acquire);
  return {.sequence = word >> 8U, .flags = static_cast<std::uint32_t>(word & 0xffU)};
}

void ring_all(const BoardView& board) {
  for (int i = 0; i < board.local_size(); ++i) board->slot(LocalRank{i}).bell.ring_all();
}

}  // namespace horo
