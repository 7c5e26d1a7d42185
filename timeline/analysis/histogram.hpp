// SPDX-License-Identifier: Apache-2.0
// A histogram of durations with four classes per doubling: percentiles of any number of values in a
// few kilobytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace horo::timeline {

class Histogram {
 public:
  void add(std::int64_t ns) {
    const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0));
    ++classes_.at(class_of(value));
    ++count_;
    sum_ += static_cast<double>(value);
    squares_ += static_cast<double>(value) * static_cast<double>(value);
    most_ = std::max(most_, value);
  }

  std::uint64_t count() const { return count_; }

  double sum() const { return sum_; }

  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

  /// Standard error of the mean, for independent values.
  double error() const {
    if (count_ < 2) return 0;
    const auto n = static_cast<double>(count_);
    return std::sqrt(std::max(0.0, squares_ / n - mean() * mean()) / (n - 1));
  }

  double most() const { return static_cast<double>(most_); }

  /// The value below which `share` (0 to 1) of all values lie, with an error of up to a quarter.
  double percentile(double share) const {
    const auto wanted = share * static_cast<double>(count_);
    double seen = 0;
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      seen += static_cast<double>(classes_.at(i));
      if (seen >= wanted && seen > 0) return std::min(middle_of(i), most());
    }
    return most();
  }

 private:
  static constexpr std::size_t kPerDoubling = 4;

  static std::size_t class_of(std::uint64_t value) {
    if (value < kPerDoubling) return value;
    const auto doubling = static_cast<std::size_t>(std::bit_width(value)) - 3;
    return doubling * kPerDoubling + (value >> doubling);
  }

  static double middle_of(std::size_t at) {
    if (at < 2 * kPerDoubling) return static_cast<double>(at);
    const auto doubling = at / kPerDoubling - 1;
    const auto low = static_cast<double>(at % kPerDoubling + kPerDoubling);
    return (low + 0.5) * static_cast<double>(std::uint64_t{1} << doubling);
  }

  std::array<std::uint64_t, 64 * kPerDoubling> classes_{};
  std::uint64_t count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
  std::uint64_t most_ = 0;
};

}  // namespace horo::timeline
