// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/ring_writer.hpp"

#include <algorithm>

#include "base/clock.hpp"

namespace horo::runtime {

namespace {

constexpr std::size_t kWorthMeasuring = 32 << 10;  // Bytes; the clock distorts smaller pieces.
constexpr double kForget = 0.125;  // Share of the excess over the known cost that is taken over.
constexpr double kSlowest = 4;     // A single piece counts as at most so many times slower.

}  // namespace

void RingPath::measured(bool around, double cost) {
  auto& known = around ? around_ : through_;
  // An interrupt can make a piece slower than it is; nothing makes it faster.
  if (known == 0 || cost < known) {
    known = cost;
  } else {
    known += kForget * (std::min(cost, kSlowest * known) - known);
  }
}

void RingWriter::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes < kWorthMeasuring) return preferred()(to, from, bytes);
  const bool around = path_.next();
  // The way not in use may be five times slower: it copies no more than a measurement needs.
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
