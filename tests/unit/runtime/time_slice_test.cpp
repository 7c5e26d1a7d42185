// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/time_slice.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <sched.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace horo::runtime;  // NOLINT(google-build-using-namespace): a test of it

namespace {

/// `sched_runtime` of `struct sched_attr`. Its header conflicts with <sched.h>.
std::uint64_t turn() {
  std::array<std::uint64_t, 7> attributes{};
  REQUIRE(syscall(SYS_sched_getattr, 0, attributes.data(), sizeof attributes, 0) == 0);
  return attributes[3];
}

}  // namespace

TEST_CASE("a thread that is started after a wait has the turns from before the wait") {
  const auto before = turn();
  const int policy = sched_getscheduler(0);
  take_short_turns();
  CHECK(turn() <= before);
  CHECK(sched_getscheduler(0) == policy);
  take_short_turns();
  give_turns_back();
  CHECK(turn() == before);
  std::uint64_t inherited = 0;
  std::thread([&inherited] { inherited = turn(); }).join();
  CHECK(inherited == before);
  give_turns_back();
  CHECK(turn() == before);
}
