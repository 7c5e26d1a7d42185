// SPDX-License-Identifier: Apache-2.0
// Numbers that must not be confused: ranks, ids, epochs and sizes.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include <fmt/format.h>

namespace horo {

/// A number with a meaning. It converts only explicitly, and is ordered, hashable and formattable.
template <typename Tag, typename T>
class Strong {
 public:
  constexpr Strong() = default;

  constexpr explicit Strong(T value) : value_(value) {}

  constexpr T value() const { return value_; }

  constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }

  friend constexpr auto operator<=>(Strong, Strong) = default;

 private:
  T value_ = 0;
};

using Rank = Strong<struct RankTag, int>;            ///< Position in the whole job, 0 ... size - 1.
using LocalRank = Strong<struct LocalRankTag, int>;  ///< Position among the ranks of one host.
using TensorId = Strong<struct TensorIdTag,
                        std::uint32_t>;  ///< Number that the ranks agreed on for a tensor's name.
using SetId = Strong<struct SetIdTag, std::uint32_t>;  ///< Number that the ranks agreed on for a
                                                       ///< process set; 0 is the world.
/// Counts the generations of a job's communicator.
using Epoch = Strong<struct EpochTag, std::uint64_t>;

using Bytes = Strong<struct BytesTag, std::uint64_t>;

namespace literals {
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes{n << 10U};
}

constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes{n << 20U};
}

constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes{n << 30U};
}
}  // namespace literals

}  // namespace horo

template <typename Tag, typename T>
struct std::hash<horo::Strong<Tag, T>> {
  std::size_t operator()(horo::Strong<Tag, T> s) const { return std::hash<T>{}(s.value()); }
};

template <typename Tag, typename T>
struct fmt::formatter<horo::Strong<Tag, T>> : fmt::formatter<T> {
  template <typename Context>
  auto format(horo::Strong<Tag, T> s, Context& context) const {
    return fmt::formatter<T>::format(s.value(), context);
  }
};
