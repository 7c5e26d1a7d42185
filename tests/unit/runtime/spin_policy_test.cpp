// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/spin_policy.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using horo::runtime::SpinPolicy;

TEST_CASE("a spin time that the user has set holds for callers, whatever the cores") {
  for (const int ranks_per_core : {0, 1, 2, 32}) {
    const auto policy = SpinPolicy::choose(7us, ranks_per_core);
    CHECK(policy.of_caller(0, false) == 7us);
    CHECK(policy.of_caller(std::uint64_t{1} << 30U, true) == 7us);
    CHECK_FALSE(policy.yields());
  }
  CHECK(SpinPolicy::choose(0us, 1).of_caller(0, false) == 0us);
}

TEST_CASE("a caller with a core of its own spins longer the more its peers still move") {
  const auto policy = SpinPolicy::choose(std::nullopt, 1);
  CHECK_FALSE(policy.yields());
  CHECK(policy.of_caller(0, false) == 50us);
  CHECK(policy.of_caller(400'000, false) == 150us);
  CHECK(policy.of_caller(std::uint64_t{1} << 40U, false) == 1050us);
}

TEST_CASE("a caller that shares its core yields it, and sleeps early after a slow turn") {
  const auto policy = SpinPolicy::choose(std::nullopt, 2);
  CHECK(policy.yields());
  CHECK(policy.of_caller(std::uint64_t{1} << 30U, false) == 40us);
  CHECK(policy.of_caller(std::uint64_t{1} << 30U, true) == 3us);
}

TEST_CASE(
    "the more ranks share a core, the longer one yields it until it sleeps, as its turn comes "
    "late") {
  const auto pair = SpinPolicy::choose(std::nullopt, 2);
  const auto crowd = SpinPolicy::choose(std::nullopt, 32);
  CHECK_FALSE(pair.crowded());
  CHECK_FALSE(SpinPolicy::choose(std::nullopt, 15).crowded());
  CHECK(crowd.crowded());
  CHECK(crowd.of_caller(0, false) == 16 * pair.of_caller(0, false));
  CHECK(crowd.of_caller(0, true) == pair.of_caller(0, true));
  CHECK(pair.slow_turn() == 500us);
  CHECK(crowd.slow_turn() == 8ms);
}

TEST_CASE("neither the runtime's own thread nor the wait for the token spins for long") {
  for (const int ranks_per_core : {0, 1, 2, 32}) {
    const auto policy = SpinPolicy::choose(std::nullopt, ranks_per_core);
    CHECK(policy.of_runtime_thread() == 3us);
    CHECK(policy.of_token() <= 10us);
  }
  CHECK(SpinPolicy::choose(1us, 1).of_runtime_thread() == 1us);
  CHECK(SpinPolicy::choose(1us, 1).of_token() == 1us);
}
