// SPDX-License-Identifier: Apache-2.0
// Kernels that reduce the buffers of all ranks, in which tensors lie end to end, into the tensors
// of one rank: a reduction and its unpacking in one launch. Inputs are combined in the order of
// ranks.
#pragma once

#include <type_traits>

#include "runtime/device/kernels/copy_kernel.hpp"

namespace horo::runtime::device_code {

inline constexpr int kMostInputs = 16;

/// Elements that one block reduces.
inline constexpr std::uint64_t kSumTile = 2048;

/// The numbers of ReduceOp.
enum class InputOp : int { average = 0, sum = 1, minimum = 3, maximum = 4, product = 5 };

template <int kRows>
struct SumArguments {
  const void* in[kMostInputs];
  double scale;  ///< Floating point is multiplied by it before the rounding; averages are in it.
  int inputs;
  InputOp op;
  int divisor;  ///< Sums of integers are divided by it, and truncated.
  int count;
  TensorTable<kRows> table;
};

/// Integers are added up in 64 bits, so that an average is that of the exact sum.
template <typename T>
struct Sum {
  static constexpr bool kWhole = true;
  using Type = std::int64_t;
};

template <>
struct Sum<Half> {
  static constexpr bool kWhole = false;
  using Type = float;
};

template <>
struct Sum<Brain> {
  static constexpr bool kWhole = false;
  using Type = float;
};

template <>
struct Sum<float> {
  static constexpr bool kWhole = false;
  using Type = float;
};

template <>
struct Sum<double> {
  static constexpr bool kWhole = false;
  using Type = double;
};

/// The NaN of all results: positive, without a payload.
template <typename T>
struct QuietNan {
  HORO_DEVICE static T value() {
    if constexpr (sizeof(T) == 2)
      return {static_cast<std::uint16_t>(std::is_same_v<T, Half> ? 0x7e00U : 0x7fc0U)};
    else
      return static_cast<T>(float_of(0x7fc00000U));
  }
};

template <typename T, int kRows>
struct SumKernel {
  using Arguments = SumArguments<kRows>;
  using Shared = NoShared;
  using Wider = typename Sum<T>::Type;
  static constexpr int kPhases = 1;
  static constexpr std::uint64_t kBytes = sizeof(T);
  static constexpr int kGroup = static_cast<int>(kWide / sizeof(T));

  HORO_DEVICE static Wider wider(T value) {
    if constexpr (Sum<T>::kWhole && !std::is_same_v<T, Truth>) {
      return static_cast<Wider>(value);
    } else {
      return widen(value);
    }
  }

  HORO_DEVICE static Wider smallest(Wider a, Wider b) {
    if constexpr (!Sum<T>::kWhole)
      if (a == b) return -(-a + -b) == 0 ? -(-a + -b) : a;  // -0 is below +0.
    return a < b || a != a ? a : b;                         // NaN stays.
  }

  HORO_DEVICE static Wider largest(Wider a, Wider b) {
    if constexpr (!Sum<T>::kWhole)
      if (a == b) return a + b == 0 ? a + b : a;
    return a > b || a != a ? a : b;
  }

  HORO_DEVICE static Wider combine(Wider a, Wider b, InputOp op) {
    switch (op) {
      case InputOp::minimum:
        return smallest(a, b);
      case InputOp::maximum:
        return largest(a, b);
      case InputOp::product:
        if constexpr (Sum<T>::kWhole)  // It wraps, which is defined without a sign only.
          return static_cast<Wider>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
        else
          return a * b;
      case InputOp::average:
      case InputOp::sum:
        break;
    }
    if constexpr (Sum<T>::kWhole)
      return static_cast<Wider>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    else
      return a + b;
  }

  HORO_DEVICE static T finish(Wider all, const Arguments& how) {
    if constexpr (std::is_same_v<T, Truth>) {
      return {static_cast<std::uint8_t>(all)};
    } else if constexpr (Sum<T>::kWhole) {
      return static_cast<T>(how.divisor == 1 ? all : all / how.divisor);
    } else {
      if (how.scale != 1) all *= static_cast<Wider>(how.scale);
      return all == all ? Round<T>::of(all) : QuietNan<T>::value();
    }
  }

  HORO_DEVICE static T one(const Arguments& how, std::uint64_t i) {
    Wider all = wider(static_cast<const T*>(how.in[0])[i]);
    for (int r = 1; r < how.inputs; ++r)
      all = combine(all, wider(static_cast<const T*>(how.in[r])[i]), how.op);
    return finish(all, how);
  }

  HORO_DEVICE static void group(const Arguments& how, T* to, std::uint64_t i) {
    using Elements = Group<T, kGroup>;
    auto in = load<Elements>(static_cast<const T*>(how.in[0]) + i);
    Wider all[kGroup];
    for (int e = 0; e < kGroup; ++e) all[e] = wider(in.at[e]);
    for (int r = 1; r < how.inputs; ++r) {
      in = load<Elements>(static_cast<const T*>(how.in[r]) + i);
      for (int e = 0; e < kGroup; ++e) all[e] = combine(all[e], wider(in.at[e]), how.op);
    }
    for (int e = 0; e < kGroup; ++e) in.at[e] = finish(all[e], how);
    store(to, in);
  }

  HORO_DEVICE static void phase(int, const Arguments& how, Shared&, const Place& place) {
    const auto tile = tile_of(how.table, how.count, place.block, kSumTile);
    const auto first = how.table.offset[tile.tensor] + tile.begin;
    const auto count = tile.end - tile.begin;
    T* const to = static_cast<T*>(how.table.memory[tile.tensor]) + tile.begin;
    const auto head = elements_before_wide(to, count);
    std::uint64_t off = 0;
    for (int r = 0; r < how.inputs; ++r)
      off |= address(static_cast<const T*>(how.in[r]) + first + head) % kWide;
    const auto groups = off == 0 ? (count - head) / kGroup : 0;
    if (place.thread < head) to[place.thread] = one(how, first + place.thread);
    for (std::uint64_t g = place.thread; g < groups; g += kThreads)
      group(how, to + head + g * kGroup, first + head + g * kGroup);
    for (auto i = head + groups * kGroup + place.thread; i < count; i += kThreads)
      to[i] = one(how, first + i);
  }
};

}  // namespace horo::runtime::device_code
