// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator/delays.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string_view>
#include <thread>

#include "base/race_point.hpp"
#include "base/result.hpp"

namespace horo::test {

namespace {

DelayPlan plan;                            // Constant while the hook is set.
std::atomic<std::uint64_t> generation{0};  // Threads that outlive a plan draw a new sequence.
std::atomic<std::uint64_t> threads{0};
std::atomic<std::uint64_t> waits{0};
std::optional<std::uint64_t> given_seed;  // Changed only while no thread waits.

/// Most seeds give many short delays. Some give few long ones, during which other ranks take many
/// steps.
DelayPlan plan_of(std::uint64_t seed) {
  switch (seed % 4) {
    case 2:
      return {.seed = seed, .one_in = 80, .longest_us = 2'000};
    case 3:
      return {.seed = seed, .one_in = 800, .longest_us = 20'000};
    default:
      return {.seed = seed};
  }
}

void wait_sometimes() {
  thread_local std::uint64_t mine = 0;
  thread_local std::minstd_rand random;
  if (const auto now = generation.load(std::memory_order_acquire); mine != now) {
    mine = now;
    random.seed(static_cast<std::uint_fast32_t>(plan.seed + 7919 * threads.fetch_add(1)));
    random.discard(4);
  }
  if (random() % plan.one_in != 0) return;
  waits.fetch_add(1, std::memory_order_relaxed);
  std::this_thread::sleep_for(std::chrono::microseconds(random() % plan.longest_us));
}

}  // namespace

RandomDelays::RandomDelays(const DelayPlan& wanted) {
  HORO_CHECK(race_point_hook.load() == nullptr);
  if (wanted.one_in == 0) return;
  plan = wanted;
  threads.store(0);
  generation.fetch_add(1, std::memory_order_release);
  race_point_hook.store(&wait_sometimes, std::memory_order_seq_cst);
}

RandomDelays::~RandomDelays() {
  race_point_hook.store(nullptr, std::memory_order_seq_cst);
}

std::uint64_t RandomDelays::count() {
  return waits.load(std::memory_order_relaxed);
}

DelayPlan delays_from_environment() {
  const char* const text = std::getenv("HORO_SIM_DELAYS");
  if (text != nullptr && std::string_view(text) == "off") return DelayPlan{.one_in = 0};
  if (text == nullptr && given_seed) return plan_of(*given_seed);
  static const auto drawn = [text] {
    const auto seed = text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
    std::printf("random delays: HORO_SIM_DELAYS=%llu\n", static_cast<unsigned long long>(seed));
    return DelayPlan{.seed = seed};
  }();
  return drawn;
}

void set_delay_seed(std::uint64_t seed) {
  given_seed = seed;
}

}  // namespace horo::test
