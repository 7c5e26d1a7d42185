// SPDX-License-Identifier: Apache-2.0
#include "timeline/record/ticks.hpp"

#include <array>
#include <fcntl.h>
#include <limits>
#include <string_view>
#include <unistd.h>

#include "base/unique_fd.hpp"

namespace horo::timeline {

namespace {

constexpr const char* kClockSource =
    "/sys/devices/system/clocksource/clocksource0/current_clocksource";

std::int64_t ns_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

bool look_up() {
  const UniqueFd fd(open(kClockSource, O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  std::array<char, 32> text{};
  const auto size = read(fd.value(), text.data(), text.size());
  if (size <= 0) return false;
  const std::string_view line(text.data(), static_cast<std::size_t>(size));
  return line.substr(0, line.find('\n')) == kTickClockSource;
}

/// Reading a clock takes about 20 ns.
constexpr std::int64_t kLongEnoughNs = 50'000;

double measure_ticks_per_ns() {
  if (!counts_by_processor()) return 1;
  if (const auto rate = cpu_tick_rate(); rate != 0) return static_cast<double>(rate) * 1e-9;
  const auto first = take_anchor();
  while (ns_of(CLOCK_MONOTONIC) - first.monotonic_ns < kLongEnoughNs) cpu_pause();
  const auto last = take_anchor();
  return static_cast<double>(last.ticks - first.ticks) /
         static_cast<double>(last.monotonic_ns - first.monotonic_ns);
}

double ticks_per_ns() {
  static const double measured = measure_ticks_per_ns();
  return measured;
}

}  // namespace

bool counts_by_processor() {
  static const bool yes = look_up();
  return yes;
}

std::uint64_t ticks_in(Duration d) {
  if (d <= Duration::zero()) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(d.count()) * ticks_per_ns());
}

Duration duration_of(std::uint64_t ticks) {
  return Duration(static_cast<std::int64_t>(static_cast<double>(ticks) / ticks_per_ns()));
}

Anchor take_anchor() {
  const bool by_processor = counts_by_processor();
  Anchor best;
  auto narrowest = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < 5; ++i) {
    const auto before = ticks_now(by_processor);
    const auto monotonic = ns_of(CLOCK_MONOTONIC);
    const auto wall = ns_of(CLOCK_REALTIME);
    const auto after = ticks_now(by_processor);
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best = {static_cast<std::int64_t>(before + (after - before) / 2), monotonic, wall};
  }
  return best;
}

}  // namespace horo::timeline
