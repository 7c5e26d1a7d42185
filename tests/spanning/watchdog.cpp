// SPDX-License-Identifier: Apache-2.0
#include "tests/spanning/watchdog.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include <fmt/format.h>

namespace horo::spanning {

namespace {

constexpr int kMostSeconds = 300;
constexpr auto kTick = std::chrono::seconds(1);
constexpr auto kLateTick = std::chrono::seconds(4);

/// Prints the stacks of all threads, where gdb is installed, and aborts.
[[noreturn]] void end_process(std::uint64_t seed) {
  std::printf("HANGS: --runs 1 --first-seed %llu\n", static_cast<unsigned long long>(seed));
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
  seconds_ = 0;
}

bool Watchdog::end() {
  const MutexLock lock(mutex_);
  running_ = false;
  return stopped_;
}

void Watchdog::watch() {
  MutexLock lock(mutex_);
  while (!ending_) {
    const auto before = std::chrono::steady_clock::now();
    if (lock.wait_for(changed_, kTick) == std::cv_status::no_timeout) continue;
    if (std::chrono::steady_clock::now() - before > kLateTick) stopped_ = true;
    if (running_ && ++seconds_ == kMostSeconds) end_process(seed_);
  }
}

}  // namespace horo::spanning
