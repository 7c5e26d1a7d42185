// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/shm/ring_writer.hpp"

#include <algorithm>

#include "base/clock.hpp"

namespace horo::runtime {

namespace {

constexpr std::size_t kWorthMeasuring = 32 << 10;  // Smaller pieces say more about the clock.
constexpr double kForget = 0.125;                  // Share of what a cost exceeds the known one by.
constexpr double kSlowest = 4;                     // No single piece counts as slower by more.

}  // namespace

void RingPath::measured(bool around, double cost) {
  auto& known = around ? around_ : through_;
  // A piece may be interrupted, which makes it slow; nothing makes it fast.
  if (known == 0 || cost < known) {
    known = cost;
  } else {
    known += kForget * (std::min(cost, kSlowest * known) - known);
  }
}

void RingWriter::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes < kWorthMeasuring) return preferred()(to, from, bytes);
  const bool around = path_.next();
  // The way not in use is tried with no more than it takes: it may be five times as slow.
  const auto first = around == path_.around() ? bytes : std::min(bytes, kWorthMeasuring);
  copy_measured(around, to, from, first);
  if (first == bytes) return;
  copy_measured(path_.around(), static_cast<std::byte*>(to) + first,
                static_cast<const std::byte*>(from) + first, bytes - first);
}

void RingWriter::copy_measured(bool around, void* to, const void* from, std::size_t bytes) {
  const auto& clock = SteadyClock::instance();
  const auto start = clock.now();
  (around ? kernels::stream_copy_kernel() : kernels::copy_kernel())(to, from, bytes);
  path_.measured(around,
                 static_cast<double>((clock.now() - start).count()) / static_cast<double>(bytes));
}

kernels::CopyFn RingWriter::preferred() const {
  return path_.around() ? kernels::stream_copy_kernel() : kernels::copy_kernel();
}

}  // namespace horo::runtime
