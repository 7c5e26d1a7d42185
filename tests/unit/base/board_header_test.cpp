// SPDX-License-Identifier: Apache-2.0
#include "base/board_header.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using horo::BoardHeader;
using horo::Errc;
using horo::LocalRank;
using horo::LossCause;
using horo::Poison;
using horo::Rank;

namespace {

/// A mapped board that cleans up after itself.
struct MappedBoard {
  explicit MappedBoard(int local_size)
      : fd(*horo::make_board({.local_size = local_size, .nonce = 7})) {
    header = *horo::map_board_header(fd);
  }

  ~MappedBoard() {
    horo::unmap_board_header(header);
    close(fd);
  }

  int fd;
  BoardHeader* header = nullptr;
};

}  // namespace

TEST_CASE("a fresh board is healthy and knows its ranks") {
  const MappedBoard board(3);
  CHECK(board.header->local_size == 3);
  CHECK(board.header->nonce == 7);
  CHECK(horo::poison_of(*board.header).cause == LossCause::none);
}

TEST_CASE("the first poison stays") {
  const MappedBoard board(2);
  const Poison first{.rank = Rank{5}, .cause = LossCause::signalled, .detail = 9};
  horo::poison_board(*board.header, first, "node7");
  horo::poison_board(*board.header, {.rank = Rank{6}, .cause = LossCause::exited, .detail = 1},
                     "node8");
  CHECK(horo::poison_of(*board.header) == first);
  CHECK(std::string(board.header->poison_host.data()) == "node7");
  CHECK(horo::describe(first) == "killed by signal 9 (SIGKILL)");
}

TEST_CASE("poison without a culprit keeps rank -1") {
  const MappedBoard board(1);
  horo::poison_board(*board.header, {.rank = Rank{-1}, .cause = LossCause::aborted}, "");
  CHECK(horo::poison_of(*board.header).rank == Rank{-1});
}

TEST_CASE("a descriptor that is no board is refused by name") {
  char path[] = "/tmp/horo-test-XXXXXX";
  const int fd = mkstemp(path);
  unlink(path);
  CHECK(horo::map_board_header(fd).error().code == Errc::protocol);
  REQUIRE(ftruncate(fd, 1 << 16) == 0);
  CHECK(horo::map_board_header(fd).error().code == Errc::protocol);
  close(fd);
}

TEST_CASE("a poison wakes a sleeper in another process") {
  const MappedBoard board(2);
  auto& slot = board.header->slot(LocalRank{1});
  const pid_t child = fork();
  if (child == 0) {
    const auto seen = slot.bell.load();
    slot.foreground_sleepers.fetch_add(1);
    if (horo::poison_of(*board.header).cause == LossCause::none) {
      horo::futex::wait(slot.bell, seen, std::chrono::seconds(30), horo::kForeground);
    }
    _exit(horo::poison_of(*board.header).cause == LossCause::exited ? 0 : 1);
  }
  while (slot.foreground_sleepers.load() == 0) sched_yield();
  horo::poison_board(*board.header, {.rank = Rank{0}, .cause = LossCause::exited}, "here");
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("local size out of range is refused") {
  CHECK(horo::make_board({.local_size = 0}).error().code == Errc::invalid_argument);
  CHECK(horo::make_board({.local_size = horo::kMaxLocalRanks + 1}).error().code ==
        Errc::invalid_argument);
}
