// SPDX-License-Identifier: Apache-2.0
// Sleeping and waking across processes. std::atomic::wait of libstdc++ works within one process
// only: it would pass every test with one process and hang between processes.
#pragma once

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.hpp"

namespace horo::futex {

using Word = std::atomic<std::uint32_t>;
static_assert(sizeof(Word) == 4 && Word::is_always_lock_free);

inline constexpr std::uint32_t kAnySleeper = 0xffffffffU;  ///< All bits.

/// Sleeps while `word` equals `seen`, until a wake through a bit of `sleepers`, a signal or
/// `limit`. May return early, so the caller must check its condition again. Thread: any.
inline void wait(const Word& word, std::uint32_t seen, Duration limit,
                 std::uint32_t sleepers = kAnySleeper) {
  timespec until{};
  const timespec* deadline = nullptr;
  if (limit != Duration::max()) {
    clock_gettime(CLOCK_MONOTONIC, &until);  // FUTEX_WAIT_BITSET takes an absolute time.
    const auto total = until.tv_nsec + limit.count() % 1'000'000'000;
    until.tv_sec += static_cast<time_t>(limit.count() / 1'000'000'000 + total / 1'000'000'000);
    until.tv_nsec = total % 1'000'000'000;
    deadline = &until;
  }
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, seen, deadline, nullptr, sleepers);
}

/// Wakes up to `count` waiters that gave a bit of `sleepers`. Thread: any.
inline void wake(const Word& word, int count = INT_MAX, std::uint32_t sleepers = kAnySleeper) {
  syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, count, nullptr, nullptr, sleepers);
}

}  // namespace horo::futex
