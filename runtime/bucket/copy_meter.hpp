// SPDX-License-Identifier: Apache-2.0
// The total time of copies between tensors and the memory that ranks share.
#pragma once

#include <atomic>
#include <cstdint>

#include "timeline/record/ticks.hpp"

namespace horo::runtime {

/// Ticks of timeline/record/ticks.hpp since the beginning, summed over the threads that copy.
struct CopyTimes {
  std::uint64_t in = 0;
  std::uint64_t out = 0;

  friend bool operator==(const CopyTimes&, const CopyTimes&) = default;

  CopyTimes& operator+=(const CopyTimes& other) {
    in += other.in;
    out += other.out;
    return *this;
  }

  friend CopyTimes operator-(const CopyTimes& a, const CopyTimes& b) {
    return {a.in - b.in, a.out - b.out};
  }
};

/// Owns the sums. Thread: any.
class CopyMeter {
 public:
  /// Adds its own lifetime to a sum.
  class Span {
   public:
    explicit Span(std::atomic<std::uint64_t>& sum) : sum_(sum), since_(now()) {}

    ~Span() { sum_.fetch_add(now() - since_, std::memory_order_relaxed); }

    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    static std::uint64_t now() { return timeline::ticks_now(timeline::counts_by_processor()); }

    std::atomic<std::uint64_t>& sum_;
    std::uint64_t since_;
  };

  Span in() { return Span(in_); }

  Span out() { return Span(out_); }

  CopyTimes times() const {
    return {in_.load(std::memory_order_relaxed), out_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<std::uint64_t> in_{0};
  std::atomic<std::uint64_t> out_{0};
};

}  // namespace horo::runtime
