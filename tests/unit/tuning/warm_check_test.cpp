// SPDX-License-Identifier: Apache-2.0
// When the result of an earlier job holds, and when it does not.
#include "runtime/tuning/warm_check.hpp"

#include <catch2/catch.hpp>

using namespace horo::runtime::tuning;  // NOLINT(google-build-using-namespace): a test of it
using horo::runtime::Tuning;

namespace {

constexpr Tuning kWinner{.fusion_threshold = 2 << 20, .cycle_ns = 0, .wake_delay_ns = 50'000};

KnownResult winner(double gain) {
  return {.tuning = kWinner, .beats_default = true, .gain = gain, .default_score = 1e9};
}

Score score(double value) {
  return {.score = value, .standard_error = 0.01 * value, .steps = 10};
}

/// The finding after the check has measured these scores of the winner and of the default.
WarmFinding check(WarmCheck& check, double winners, double fallback) {
  auto found = WarmFinding::goes_on;
  for (int i = 0; i < 3 && found == WarmFinding::goes_on; ++i)
    found = check.add(score(check.next() == kWinner ? winners : fallback));
  return found;
}

}  // namespace

TEST_CASE("a winner that wins again is confirmed in three samples, after the default") {
  WarmCheck warm(winner(0.2), {}, std::nullopt);
  CHECK(warm.next() == Tuning{});
  CHECK(warm.add(score(1e9)) == WarmFinding::goes_on);
  CHECK(warm.next() == kWinner);
  CHECK(warm.add(score(1.2e9)) == WarmFinding::goes_on);
  CHECK(warm.next() == kWinner);
  CHECK(warm.add(score(1.22e9)) == WarmFinding::confirmed);
  CHECK(warm.gain() == Approx(0.21));
  CHECK(warm.gain_error() == Approx(1.21 * 0.01 * std::sqrt(1.5)));
}

TEST_CASE("a winner that is no better now, or gains far less, is refuted") {
  for (const double now : {0.9e9, 0.99e9, 1.0e9, 1.05e9}) {
    CAPTURE(now);
    WarmCheck warm(winner(0.3), {}, std::nullopt);
    CHECK(check(warm, now, 1e9) == WarmFinding::refuted);
  }
  WarmCheck small(winner(0.03), {}, std::nullopt);
  CHECK(check(small, 1.02e9, 1e9) == WarmFinding::confirmed);
}

TEST_CASE("a job that runs at another speed is another job") {
  for (const double now : {0.5e9, 2e9}) {
    CAPTURE(now);
    WarmCheck warm(winner(0.2), {}, std::nullopt);
    CHECK(check(warm, 1.2 * now, now) == WarmFinding::refuted);
    WarmCheck of_default({.tuning = {}, .default_score = 1e9}, {}, std::nullopt);
    CHECK(of_default.add(score(now)) == WarmFinding::refuted);
  }
}

TEST_CASE("that the default was best is confirmed by one sample") {
  WarmCheck warm({.tuning = {}, .default_score = 1e9}, {}, std::nullopt);
  CHECK(warm.next() == Tuning{});
  CHECK(warm.add(score(1.1e9)) == WarmFinding::confirmed);
}

TEST_CASE("a default that was measured already is not measured again") {
  WarmCheck warm(winner(0.2), {}, score(1e9));
  CHECK(warm.next() == kWinner);
  CHECK(warm.add(score(1.2e9)) == WarmFinding::goes_on);
  CHECK(warm.next() == kWinner);
  CHECK(warm.add(score(1.2e9)) == WarmFinding::confirmed);
}
