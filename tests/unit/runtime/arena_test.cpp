// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/arena.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace {

bool memory_is_full = false;

}  // namespace

/// In place of the C library's: the memory of the machine is full when a test says so.
extern "C" int posix_fallocate(int fd, off_t offset, off_t bytes) {
  if (memory_is_full) return ENOSPC;
  return syscall(SYS_fallocate, fd, 0, offset, bytes) == 0 ? 0 : errno;
}

using namespace horo;           // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;  // NOLINT(google-build-using-namespace): a test of it

TEST_CASE("an allocation that fails leaves no pages in the arena") {
  constexpr std::uint64_t kBytes = 4 << 20;
  const int fd = *make_board({.local_size = 1, .nonce = 13});
  Arena arena(*HostMemory::attach(fd, LocalRank{0}, Rank{0}, {.arena_bytes = 2 * kBytes}));
  const auto blocks = [fd] {
    struct stat now {};

    REQUIRE(fstat(fd, &now) == 0);
    return now.st_blocks;
  };
  auto* const memory = *arena.allocate(kBytes);
  REQUIRE(arena.free(memory));
  const auto before = blocks();
  // As huge pages that the allocation gets before the memory is full.
  std::memset(memory, 1, kBytes);
  REQUIRE(blocks() > before);
  memory_is_full = true;
  const auto failed = arena.allocate(kBytes);
  memory_is_full = false;
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == Errc::out_of_memory);
  CHECK(blocks() == before);
  CHECK(arena.allocate(kBytes));
  close(fd);
}
