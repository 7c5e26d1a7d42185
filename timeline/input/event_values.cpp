// SPDX-License-Identifier: Apache-2.0
#include "timeline/input/event_values.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

namespace horo::timeline {

std::int64_t to_ns(double us) {
  constexpr double kMost = 2e18;
  return us == us ? static_cast<std::int64_t>(std::clamp(us * 1000, -kMost, kMost)) : 0;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

int row_rank(std::string_view tid) {
  int rank = -1;
  const auto parsed = std::from_chars(tid.data(), tid.data() + tid.size(), rank);
  return parsed.ec == std::errc{} && is_number(tid) && rank < kMostRanks ? rank : -1;
}

std::string_view activity_mover(std::string_view activity) {
  for (const std::string_view mover : {"SHM", "TCP", "GLOO", "MPI", "NCCL", "CCL", "OTHER"}) {
    if (activity.starts_with(mover) && activity.substr(mover.size()).starts_with('_')) return mover;
  }
  return {};
}

std::uint64_t dtype_bytes(std::string_view dtype) {
  for (const auto& [bits, bytes] : {std::pair{"64", 8}, {"32", 4}, {"16", 2}}) {
    if (dtype.ends_with(bits)) return static_cast<std::uint64_t>(bytes);
  }
  return dtype.empty() ? 0 : 1;
}

std::uint64_t shape_elements(std::string_view shape) {
  std::uint64_t product = 1;
  for (std::size_t at = 0; at < shape.size();) {
    std::uint64_t extent = 0;
    const auto [end, error] =
        std::from_chars(shape.data() + at, shape.data() + shape.size(), extent);
    if (error == std::errc::invalid_argument) {
      ++at;
      continue;
    }
    if (error != std::errc{}) extent = kMostElements;
    product = extent == 0 ? 0 : product > kMostElements / extent ? kMostElements : product * extent;
    at = static_cast<std::size_t>(end - shape.data());
  }
  return product;
}

}  // namespace horo::timeline
