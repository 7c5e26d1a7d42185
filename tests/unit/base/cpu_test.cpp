// SPDX-License-Identifier: Apache-2.0
#include "base/cpu/cpu.hpp"

#include <time.h>

#include <catch2/catch.hpp>

namespace {

double clock_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

}  // namespace

TEST_CASE("the cycle counter moves on while a thread pauses") {
  const auto first = horo::cpu_ticks();
  while (horo::cpu_ticks() == first) horo::cpu_pause();
  CHECK(horo::cpu_ticks() > first);
}

TEST_CASE("a stated counter rate fits the clock, and its ticks are shorter than 1 ns") {
  const auto rate = static_cast<double>(horo::cpu_tick_rate());
  if (rate == 0) return;  // The processor does not state it.
  CHECK(rate >= 1e9);
  CHECK(rate < 4.3e9);
  // The ticks between the inner two clocks are no more than the outer two clocks allow, and those
  // between the outer two no less than the inner two do; a thousandth and 2 us for rounding.
  const auto before = clock_ns();
  const auto first = horo::cpu_ticks();
  const auto after_first = clock_ns();
  while (clock_ns() - after_first < 5e6) horo::cpu_pause();
  const auto before_last = clock_ns();
  const auto last = horo::cpu_ticks();
  const auto after = clock_ns();
  const auto passed_ns = static_cast<double>(last - first) / rate * 1e9;
  CHECK(passed_ns <= (after - before) * 1.001 + 2000);
  CHECK(passed_ns >= (before_last - after_first) * 0.999 - 2000);
}
