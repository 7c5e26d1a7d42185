// SPDX-License-Identifier: Apache-2.0
#include "launcher/protocol/heartbeat_timer.hpp"

#include <functional>
#include <optional>
#include <thread>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

/// A timer with six beats of 1 ms. `each` runs at each beat. Returns the beats until it is lost.
int beats_until_lost(int limits, const std::function<void(HeartbeatTimer&, int)>& each) {
  auto loop = Loop::make();
  REQUIRE(loop);
  int said = 0;
  std::optional<HeartbeatTimer> timer;
  timer.emplace(
      **loop, 6ms, limits,
      [&] {
        each(*timer, ++said);
        if (said == 100) (*loop)->stop();
      },
      [&] { (*loop)->stop(); });
  (*loop)->run();
  return said;
}

}  // namespace

TEST_CASE("a silent side is lost after the limit, counted in beats") {
  CHECK(beats_until_lost(1, [](HeartbeatTimer&, int) {}) == 5);
  CHECK(beats_until_lost(3, [](HeartbeatTimer&, int) {}) == 17);
}

TEST_CASE("a side whose heartbeats arrive is not lost") {
  CHECK(beats_until_lost(1, [](HeartbeatTimer& timer, int) { timer.heard(); }) == 100);
}

TEST_CASE("a loop that was delayed counts one missed beat, not many") {
  CHECK(beats_until_lost(1, [](HeartbeatTimer&, int said) {
          if (said == 2) std::this_thread::sleep_for(20ms);
        }) == 5);
}

TEST_CASE("an announced silence does not count as a missing heartbeat") {
  CHECK(beats_until_lost(1, [](HeartbeatTimer& timer, int said) {
          if (said == 1 || said == 20) timer.excuse(said == 1);
        }) == 25);
}
