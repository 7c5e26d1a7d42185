// SPDX-License-Identifier: Apache-2.0
// The differences between processors: how a spinning thread pauses, how cycles are counted, and
// which memory order a locked store has.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <string_view>

namespace horo {

#if defined(__x86_64__)

/// The kernel's name for the counter that cpu_ticks() reads, where that is its clock source.
inline constexpr std::string_view kTickClockSource = "tsc";

/// Tells the core that this thread spins. Takes some tens of cycles.
inline void cpu_pause() {
  __builtin_ia32_pause();
}

/// A counter that runs at a constant rate. Thread: any; equal on all cores only where the kernel
/// uses it as its clock source.
inline std::uint64_t cpu_ticks() {
  return __builtin_ia32_rdtsc();
}

/// The counter's rate in Hz; 0: it has to be measured.
inline std::uint64_t cpu_tick_rate() {
  return 0;
}

#elif defined(__aarch64__)

inline constexpr std::string_view kTickClockSource = "arch_sys_counter";

/// `isb` rather than `yield`: most cores ignore `yield`, while `isb` takes about as long as the
/// `pause` of x86, and so leaves memory to the core that the thread waits for.
inline void cpu_pause() {
  asm volatile("isb" ::: "memory");
}

/// The counter's own rate: 25 MHz on some machines, 1 GHz on others.
inline std::uint64_t cpu_counter_rate() {
  std::uint64_t rate = 0;
  asm("mrs %0, cntfrq_el0" : "=r"(rate));
  return rate;
}

/// By so many bits the counter is shifted: then a tick takes between half a nanosecond and one on
/// every machine, as on x86, and a format that keeps ticks in few bits holds the same times.
inline int cpu_tick_shift() {
  return std::max(0, std::countl_zero(cpu_counter_rate()) - 33);
}

inline std::uint64_t cpu_ticks() {
  std::uint64_t count = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count << cpu_tick_shift();
}

inline std::uint64_t cpu_tick_rate() {
  return cpu_counter_rate() << cpu_tick_shift();
}

#else
#error "Horo supports x86_64 and aarch64; another processor needs its own part of base/cpu/cpu.hpp"
#endif

/// A full fence behind a seq_cst store or read-modify-write of this thread: no later load, whatever
/// its order, is done before that store. On x86 such a store is a locked instruction, which is a
/// full fence already, so only the compiler has to be held back.
inline void fence_after_seq_cst_store() {
#if defined(__x86_64__)
  std::atomic_signal_fence(std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace horo
