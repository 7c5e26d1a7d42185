// SPDX-License-Identifier: Apache-2.0
// Kernels of Adasum for two vectors (runtime/bucket/adasum.hpp): their scalar products, and their
// combination. Products are float64 and added up in an order that depends on the length only.
#pragma once

#include "runtime/device/kernels/copy_kernel.hpp"

namespace horo::runtime::device_code {

inline constexpr int kProducts = 3;  ///< a*b, a*a, b*b
inline constexpr int kHalvings = 8;  ///< They leave one of a block's threads.

/// Elements that one block combines.
inline constexpr std::uint64_t kCombineTile = 8192;

struct DotsArguments {
  const void* a;
  const void* b;
  std::uint64_t elements;
  double* partial;  ///< Three products per block.
};

struct FinishDotsArguments {
  const double* partial;
  double* products;
  int blocks;
};

struct CombineArguments {
  const void* a;
  const void* b;
  void* out;
  std::uint64_t elements;
  const double* products;
  double scale;
};

struct SharedProducts {
  double of[kProducts][kThreads];
};

/// Adds the upper half of the threads that are left to the lower one.
HORO_DEVICE void halve(SharedProducts& shared, int halving, unsigned thread) {
  const unsigned left = kThreads >> static_cast<unsigned>(halving);
  if (thread >= left) return;
  for (auto& product : shared.of) product[thread] += product[thread + left];
}

template <typename T>
struct DotsKernel {
  using Arguments = DotsArguments;
  using Shared = SharedProducts;
  static constexpr int kPhases = 1 + kHalvings + 1;
  static constexpr std::uint64_t kBytes = sizeof(T);

  HORO_DEVICE static void add(const Arguments& how, Shared& shared, const Place& place) {
    double ab = 0;
    double aa = 0;
    double bb = 0;
    const auto step = static_cast<std::uint64_t>(place.blocks) * kThreads;
    for (auto i = static_cast<std::uint64_t>(place.block) * kThreads + place.thread;
         i < how.elements; i += step) {
      const auto a = static_cast<double>(widen(static_cast<const T*>(how.a)[i]));
      const auto b = static_cast<double>(widen(static_cast<const T*>(how.b)[i]));
      ab += a * b;
      aa += a * a;
      bb += b * b;
    }
    shared.of[0][place.thread] = ab;
    shared.of[1][place.thread] = aa;
    shared.of[2][place.thread] = bb;
  }

  HORO_DEVICE static void phase(int number, const Arguments& how, Shared& shared,
                                const Place& place) {
    if (number == 0) {
      add(how, shared, place);
    } else if (number <= kHalvings) {
      halve(shared, number, place.thread);
    } else if (place.thread < kProducts) {
      how.partial[place.block * kProducts + place.thread] = shared.of[place.thread][0];
    }
  }
};

/// One block.
struct FinishDotsKernel {
  using Arguments = FinishDotsArguments;
  using Shared = SharedProducts;
  static constexpr int kPhases = 1 + kHalvings + 1;

  HORO_DEVICE static void phase(int number, const Arguments& how, Shared& shared,
                                const Place& place) {
    if (number == 0) {
      for (int p = 0; p < kProducts; ++p) {
        double all = 0;
        for (int b = static_cast<int>(place.thread); b < how.blocks;
             b += static_cast<int>(kThreads))
          all += how.partial[b * kProducts + p];
        shared.of[p][place.thread] = all;
      }
    } else if (number <= kHalvings) {
      halve(shared, number, place.thread);
    } else if (place.thread < kProducts) {
      how.products[place.thread] = shared.of[place.thread][0];
    }
  }
};

template <typename T>
struct CombineKernel {
  using Arguments = CombineArguments;
  using Shared = NoShared;
  static constexpr int kPhases = 1;
  static constexpr std::uint64_t kBytes = sizeof(T);
  /// The root of the smallest normal float64: a coefficient whose square is below it is 1.
  static constexpr double kTiny = 0x1p-511;

  HORO_DEVICE static double coefficient(double ab, double square) {
    return square < kTiny ? 1 : 1 - ab / (2 * square);
  }

  HORO_DEVICE static void phase(int, const Arguments& how, Shared&, const Place& place) {
    const double a = coefficient(how.products[0], how.products[1]) * how.scale;
    const double b = coefficient(how.products[0], how.products[2]) * how.scale;
    const auto begin = static_cast<std::uint64_t>(place.block) * kCombineTile;
    const auto end = smaller(begin + kCombineTile, how.elements);
    for (auto i = begin + place.thread; i < end; i += kThreads) {
      const double sum = a * static_cast<double>(widen(static_cast<const T*>(how.a)[i])) +
                         b * static_cast<double>(widen(static_cast<const T*>(how.b)[i]));
      static_cast<T*>(how.out)[i] = Round<T>::of(sum);
    }
  }
};

}  // namespace horo::runtime::device_code
