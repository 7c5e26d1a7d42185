// SPDX-License-Identifier: Apache-2.0
#include "tests/spanning/run_clock.hpp"

#include <atomic>
#include <sched.h>
#include <thread>

#include <catch2/catch.hpp>

using namespace horo;            // NOLINT(google-build-using-namespace): a test of it
using namespace horo::spanning;  // NOLINT(google-build-using-namespace): a test of it

TEST_CASE("a run that has cores expires after the time that it may take") {
  RunClock clock;
  clock.add(RunClock::kMostCounted - std::chrono::seconds(1), Duration::zero());
  CHECK(!clock.expired());
  clock.add(std::chrono::seconds(1), Duration::zero());
  CHECK(clock.expired());
  clock.restart();
  CHECK(!clock.expired());
}

TEST_CASE("time in which the threads of a run wait for cores does not count") {
  RunClock clock;
  // Several threads wait at once: the sum is more than the time that has passed.
  clock.add(2 * RunClock::kMostCounted, 20 * RunClock::kMostCounted);
  CHECK(!clock.expired());
  CHECK(clock.all() == 2 * RunClock::kMostCounted);
  CHECK(clock.waited_for_cores() == 20 * RunClock::kMostCounted);
  clock.add(RunClock::kMostCounted, Duration::zero());
  CHECK(clock.expired());
}

TEST_CASE("a run without any core expires in the end") {
  RunClock clock;
  clock.add(RunClock::kMostInAll, 2 * RunClock::kMostInAll);
  CHECK(clock.expired());
}

TEST_CASE("threads that share one core are seen to wait for it") {
  cpu_set_t all;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  int first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  std::atomic<bool> stop{false};
  const auto compute = [&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    sched_setaffinity(0, sizeof one, &one);
    while (!stop) {
    }
  };
  CoreWaits waits;
  waits.take();
  std::thread threads[] = {std::thread(compute), std::thread(compute)};
  auto waited = Duration::zero();
  while (waited < std::chrono::milliseconds(20)) waited += waits.take();
  stop = true;
  for (auto& thread : threads) thread.join();
}
