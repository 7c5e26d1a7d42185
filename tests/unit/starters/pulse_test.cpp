// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/pulse.hpp"

#include <functional>
#include <optional>
#include <thread>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

/// A pulse of six beats of 1 ms, each of which `each` may answer.
int beats_until_lost(int limits, const std::function<void(Pulse&, int)>& each) {
  auto loop = Loop::make();
  REQUIRE(loop);
  int said = 0;
  std::optional<Pulse> pulse;
  pulse.emplace(
      **loop, 6ms, limits,
      [&] {
        each(*pulse, ++said);
        if (said == 100) (*loop)->stop();
      },
      [&] { (*loop)->stop(); });
  (*loop)->run();
  return said;
}

}  // namespace

TEST_CASE("silence is lost after the limit, counted in beats") {
  CHECK(beats_until_lost(1, [](Pulse&, int) {}) == 5);
  CHECK(beats_until_lost(3, [](Pulse&, int) {}) == 17);
}

TEST_CASE("who is heard is not lost") {
  CHECK(beats_until_lost(1, [](Pulse& pulse, int) { pulse.heard(); }) == 100);
}

TEST_CASE("a loop that was held up has missed one beat, not many") {
  CHECK(beats_until_lost(1, [](Pulse&, int said) {
          if (said == 2) std::this_thread::sleep_for(20ms);
        }) == 5);
}

TEST_CASE("announced silence does not count") {
  CHECK(beats_until_lost(1, [](Pulse& pulse, int said) {
          if (said == 1 || said == 20) pulse.excuse(said == 1);
        }) == 25);
}
