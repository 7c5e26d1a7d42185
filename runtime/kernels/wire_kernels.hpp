// SPDX-License-Identifier: Apache-2.0
// Conversions between float32 and the 16-bit types in which elements travel between hosts. See
// vector.hpp for why all is internal.
#pragma once

#include "runtime/kernels/kernel_table.hpp"
#include "runtime/kernels/vector.hpp"

namespace horo::kernels {
namespace {

/// The factors of an encoding, and the inverse of the last one, which is exact for a power of two.
struct EncodeFactors {
  float before;
  float scale;
  float unscale;
};

/// Returns the bits and sets `lost` to what they leave of `v`. A value that is infinite or NaN, or
/// becomes infinite, leaves nothing: it would stay in the remainder for ever.
template <typename T>
HORO_KERNEL_INLINE void encode_vector(Floats v, const EncodeFactors& by, char* to, Floats& lost) {
  T::store(to, canonical(v * by.scale));
  const Floats rest = v - T::load(to) * by.unscale;
  lost = rest - rest == Floats{} ? rest : Floats{};
}

template <typename T>
void encode(const Encoding& how, void* dst, const float* src, float* remainder, std::size_t count) {
  const EncodeFactors by{how.before, how.scale, 1 / how.scale};
  constexpr std::size_t kLanes = kWidth / sizeof(float);
  auto* const to = static_cast<char*>(dst);
  const auto* const from = reinterpret_cast<const char*>(src);
  auto* const kept = reinterpret_cast<char*>(remainder);
  std::size_t i = 0;
  for (; count - i >= kLanes; i += kLanes) {
    Floats v = load_bytes<Floats>(from + i * sizeof(float)) * by.before;
    char* const at = to + i * sizeof(typename T::Stored);
    if (kept == nullptr) {
      T::store(at, canonical(v * by.scale));
      continue;
    }
    Floats lost;
    v = v + load_bytes<Floats>(kept + i * sizeof(float));
    encode_vector<T>(v, by, at, lost);
    store_bytes(kept + i * sizeof(float), lost);
  }
  if (i == count) return;
  // The rest: the same computation on lanes of which only the first ones are used.
  const auto bytes = (count - i) * sizeof(float);
  Floats v{};
  Floats old{};
  char halves[T::kBytes];
  __builtin_memcpy(&v, from + i * sizeof(float), bytes);
  if (kept != nullptr) __builtin_memcpy(&old, kept + i * sizeof(float), bytes);
  v = v * by.before;
  if (kept != nullptr) v = v + old;
  encode_vector<T>(v, by, halves, old);
  __builtin_memcpy(to + i * sizeof(typename T::Stored), halves, bytes / 2);
  if (kept != nullptr) __builtin_memcpy(kept + i * sizeof(float), &old, bytes);
}

template <typename T>
void decode(float* dst, const void* src, std::size_t count) {
  constexpr std::size_t kLanes = kWidth / sizeof(float);
  const auto* const from = static_cast<const char*>(src);
  auto* const to = reinterpret_cast<char*>(dst);
  std::size_t i = 0;
  for (; count - i >= kLanes; i += kLanes)
    store_bytes(to + i * sizeof(float), T::load(from + i * sizeof(typename T::Stored)));
  if (i == count) return;
  char halves[T::kBytes] = {};
  __builtin_memcpy(halves, from + i * sizeof(typename T::Stored),
                   (count - i) * sizeof(typename T::Stored));
  const Floats v = T::load(halves);
  __builtin_memcpy(to + i * sizeof(float), &v, (count - i) * sizeof(float));
}

}  // namespace
}  // namespace horo::kernels
