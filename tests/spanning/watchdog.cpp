// SPDX-License-Identifier: Apache-2.0
#include "tests/spanning/watchdog.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include <fmt/format.h>

namespace horo::spanning {

namespace {

constexpr auto kTick = std::chrono::seconds(1);
constexpr auto kLateTick = std::chrono::seconds(4);

/// Prints the stacks of all threads, where gdb is installed, and aborts.
[[noreturn]] void end_process(std::uint64_t seed, const RunClock& clock) {
  using Seconds = std::chrono::duration<double>;
  std::printf(
      "HANGS: --runs 1 --first-seed %llu (in %.0f s, its threads waited %.0f s for cores)\n",
      static_cast<unsigned long long>(seed), Seconds(clock.all()).count(),
      Seconds(clock.waited_for_cores()).count());
  std::fflush(stdout);
  const auto stacks =
      fmt::format("gdb -p {} -batch -ex 'thread apply all backtrace' 2>&1", getpid());
  static_cast<void>(std::system(stacks.c_str()));
  std::abort();
}

}  // namespace

Watchdog::Watchdog() : thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::begin(std::uint64_t seed) {
  const MutexLock lock(mutex_);
  seed_ = seed;
  running_ = true;
  stopped_ = false;
  clock_.restart();
}

bool Watchdog::end() {
  const MutexLock lock(mutex_);
  running_ = false;
  return stopped_;
}

void Watchdog::watch() {
  CoreWaits waits;
  MutexLock lock(mutex_);
  while (!ending_) {
    const auto before = std::chrono::steady_clock::now();
    if (lock.wait_for(changed_, kTick) == std::cv_status::no_timeout) continue;
    if (std::chrono::steady_clock::now() - before > kLateTick) stopped_ = true;
    const auto waited = waits.take();
    if (running_) clock_.add(kTick, waited);
    if (running_ && clock_.expired()) end_process(seed_, clock_);
  }
}

}  // namespace horo::spanning
