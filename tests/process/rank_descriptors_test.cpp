// SPDX-License-Identifier: Apache-2.0
// The numbers that the agent keeps for its ranks, in processes of their own that lack descriptors.
#include "launcher/ranks/rank_descriptors.hpp"

#include <fcntl.h>
#include <functional>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;

namespace {

/// The result of `test` in a child, whose limit of descriptors is `limit`.
bool holds_in_child(rlim_t limit, const std::function<bool()>& test) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit all{.rlim_cur = limit, .rlim_max = limit};
    for (int fd = STDERR_FILENO + 1; fd < 256; ++fd) close(fd);
    _exit(setrlimit(RLIMIT_NOFILE, &all) == 0 && test() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool is_nothing(int number) {
  struct stat about {};

  struct stat null {};

  return fstat(number, &about) == 0 && stat("/dev/null", &null) == 0 &&
         about.st_rdev == null.st_rdev && S_ISCHR(about.st_mode);
}

bool is_pipe(int number) {
  struct stat about {};

  return fstat(number, &about) == 0 && S_ISFIFO(about.st_mode);
}

void fill() {
  while (open("/", O_RDONLY | O_CLOEXEC) >= 0) {
  }
}

}  // namespace

TEST_CASE("without a free descriptor the agent's start fails instead of taking a live one") {
  CHECK(holds_in_child(64, [] {
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[0], kBoardDescriptor) < 0) return false;
    fill();
    const auto held = hold_rank_descriptors({});
    return !held && is_pipe(kBoardDescriptor) &&
           held.error().message.find("/dev/null") != std::string::npos;
  }));
}

TEST_CASE("a limit of descriptors that is too low is named at the agent's start") {
  CHECK(holds_in_child(kBoardDescriptor, [] {
    const auto held = hold_rank_descriptors({});
    return !held && held.error().message.find("raise ulimit -Hn") != std::string::npos;
  }));
  CHECK(holds_in_child(kTimelineDescriptor, [] { return bool(hold_rank_descriptors({})); }));
}

TEST_CASE("between two assignments both numbers stay occupied when no descriptor is left") {
  CHECK(holds_in_child(64, [] {
    if (!hold_rank_descriptors({})) return false;
    int ends[2];
    if (pipe(ends) != 0) return false;
    for (const int number : {kBoardDescriptor, kTimelineDescriptor})
      if (dup2(ends[0], number) < 0) return false;
    fill();
    clear_rank_descriptors();
    return is_nothing(kBoardDescriptor) && is_nothing(kTimelineDescriptor);
  }));
}

TEST_CASE("a descriptor that the ranks need is not overwritten by their board") {
  CHECK(holds_in_child(64, [] {
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[0], kTimelineDescriptor) < 0) return false;
    const auto held = hold_rank_descriptors({kTimelineDescriptor});
    return !held && is_pipe(kTimelineDescriptor) &&
           held.error().message.find("descriptor 57") != std::string::npos;
  }));
}

TEST_CASE("an inherited descriptor that nobody needs gives way") {
  CHECK(holds_in_child(64, [] {
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[0], kBoardDescriptor) < 0) return false;
    return hold_rank_descriptors({}) && is_nothing(kBoardDescriptor);
  }));
}
