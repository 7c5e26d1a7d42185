// SPDX-License-Identifier: Apache-2.0
// How late each rank arrived, over the course of a timeline whose length is not known in advance.
// The time is divided into kParts equal parts, whose width doubles when they are used up. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

namespace horo::timeline {

/// Thread: owner. Memory grows with the number of ranks.
class LatenessOverTime {
 public:
  static constexpr std::size_t kParts = 64;

  struct Part {
    double late_ns = 0;
    double times = 0;
  };

  using Row = std::array<Part, kParts>;

  /// `at_ns`: the time since the beginning of the timeline.
  void add(int rank, std::int64_t at_ns, double late_ns) {
    const auto at = static_cast<std::uint64_t>(std::max<std::int64_t>(at_ns, 0));
    while (at / width_ns_ >= kParts) halve();
    auto& part = rows_[rank].at(at / width_ns_);
    part.late_ns += late_ns;
    ++part.times;
  }

  /// The width of one part.
  std::uint64_t width_ns() const { return width_ns_; }

  const std::map<int, Row>& rows() const { return rows_; }

 private:
  void halve() {
    width_ns_ *= 2;
    for (auto& [rank, row] : rows_) {
      for (std::size_t i = 0; i < kParts; ++i) {
        const auto part = [&row](std::size_t k) { return k < kParts ? row.at(k) : Part{}; };
        const auto a = part(2 * i);
        const auto b = part(2 * i + 1);
        row.at(i) = {a.late_ns + b.late_ns, a.times + b.times};
      }
    }
  }

  std::uint64_t width_ns_ = 1'000'000;
  std::map<int, Row> rows_;
};

}  // namespace horo::timeline
