// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/spin_policy.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using horo::runtime::SpinPolicy;

TEST_CASE("a spin time that the user has set holds for callers, whatever the cores") {
  for (const bool shares_cores : {false, true}) {
    const auto policy = SpinPolicy::choose(7us, shares_cores);
    CHECK(policy.of_caller(0, false) == 7us);
    CHECK(policy.of_caller(std::uint64_t{1} << 30U, true) == 7us);
    CHECK_FALSE(policy.yields());
  }
  CHECK(SpinPolicy::choose(0us, false).of_caller(0, false) == 0us);
}

TEST_CASE("a caller with a core of its own spins longer the more its peers still move") {
  const auto policy = SpinPolicy::choose(std::nullopt, false);
  CHECK_FALSE(policy.yields());
  CHECK(policy.of_caller(0, false) == 50us);
  CHECK(policy.of_caller(400'000, false) == 150us);
  CHECK(policy.of_caller(std::uint64_t{1} << 40U, false) == 1050us);
}

TEST_CASE("a caller that shares its core yields it, and sleeps early after a slow turn") {
  const auto policy = SpinPolicy::choose(std::nullopt, true);
  CHECK(policy.yields());
  CHECK(policy.of_caller(std::uint64_t{1} << 30U, false) == 40us);
  CHECK(policy.of_caller(std::uint64_t{1} << 30U, true) == 3us);
}

TEST_CASE("neither the runtime's own thread nor the wait for the token spins for long") {
  for (const bool shares_cores : {false, true}) {
    const auto policy = SpinPolicy::choose(std::nullopt, shares_cores);
    CHECK(policy.of_runtime_thread() == 3us);
    CHECK(policy.of_token() <= 10us);
  }
  CHECK(SpinPolicy::choose(1us, false).of_runtime_thread() == 1us);
  CHECK(SpinPolicy::choose(1us, false).of_token() == 1us);
}
