// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/kernels/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace horo::tests {

using kernels::DType;
using kernels::Isa;
using kernels::ReduceOp;
using kernels::Reduction;

namespace {

/// Rounds to a format of `digits` fraction bits and least normal exponent `least`; `bias` = 1 -
/// least.
std::uint16_t narrowed(float value, int digits, int least, int infinite_exponent) {
  const int infinity = infinite_exponent << digits;
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | (1 << (digits - 1)));
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (std::isinf(magnitude)) return static_cast<std::uint16_t>(sign | infinity);
  const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
  // In units of the last place; one that rounds up to the next power of two carries into the
  // exponent.
  const int units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, digits - exponent)));
  const int bits = ((exponent - least) << digits) + units;
  return static_cast<std::uint16_t>(sign | std::min(bits, infinity));
}

float widened(std::uint16_t bits, int digits, int least, int infinite_exponent) {
  const int exponent = (bits & 0x7fff) >> digits;
  const int fraction = bits & ((1 << digits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == infinite_exponent) {
    if (fraction != 0) return std::numeric_limits<float>::quiet_NaN();
    return static_cast<float>(sign * std::numeric_limits<double>::infinity());
  }
  const int units = exponent == 0 ? fraction : fraction + (1 << digits);
  return static_cast<float>(sign * std::ldexp(units, std::max(exponent, 1) - 1 + least - digits));
}

template <typename F>
F combine(ReduceOp op, F a, F b) {
  switch (op) {
    case ReduceOp::average:
    case ReduceOp::sum:
    case ReduceOp::adasum:  // No kernel of this kind.
      return a + b;
    case ReduceOp::product:
      return a * b;
    case ReduceOp::min:
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<F>::quiet_NaN();
      return a < b || (a == b && std::signbit(a)) ? a : b;
    case ReduceOp::max:
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<F>::quiet_NaN();
      return a > b || (a == b && !std::signbit(a)) ? a : b;
  }
  return a;
}

template <typename F>
F reduced(const Reduction& what, const std::vector<F>& values) {
  const auto before = static_cast<F>(what.prescale);
  const auto after =
      static_cast<F>(what.op == ReduceOp::average ? what.postscale / what.ranks : what.postscale);
  F result = values[0] * before;
  for (std::size_t k = 1; k < values.size(); ++k)
    result = combine<F>(what.op, result, values[k] * before);
  result *= after;
  return std::isnan(result) ? std::numeric_limits<F>::quiet_NaN() : result;
}

template <typename I>
I clamped(double value) {
  if (std::isnan(value)) return 0;
  const double whole = std::trunc(value);
  if (whole >= std::ldexp(1.0, std::numeric_limits<I>::digits))
    return std::numeric_limits<I>::max();
  if (whole <= static_cast<double>(std::numeric_limits<I>::min()))
    return std::numeric_limits<I>::min();
  return static_cast<I>(whole);
}

template <typename I>
I reduced_integers(const Reduction& what, std::vector<I> values) {
  if (what.prescale != 1) {
    for (auto& value : values) value = clamped<I>(static_cast<double>(value) * what.prescale);
  }
  __extension__ __int128 total = +values[0];  // the sign says that a promotion is meant
  for (std::size_t k = 1; k < values.size(); ++k) {
    switch (what.op) {
      case ReduceOp::average:
        total += +values[k];
        break;
      case ReduceOp::sum:
      case ReduceOp::adasum:
        total = +static_cast<I>(total + values[k]);
        break;
      case ReduceOp::product:
        total = +static_cast<I>(total * values[k]);
        break;
      case ReduceOp::min:
        total = +std::min<I>(static_cast<I>(total), values[k]);
        break;
      case ReduceOp::max:
        total = +std::max<I>(static_cast<I>(total), values[k]);
        break;
    }
  }
  if (what.op == ReduceOp::average && what.postscale == 1)
    return static_cast<I>(total / what.ranks);
  if (what.op == ReduceOp::average) {
    return clamped<I>(static_cast<double>(total) * what.postscale / what.ranks);
  }
  if (what.postscale == 1) return static_cast<I>(total);
  return clamped<I>(static_cast<double>(total) * what.postscale);
}

template <typename E>
E element(const Bytes& from, std::size_t i) {
  E value;
  std::memcpy(&value, from.data() + i * sizeof(E), sizeof(E));
  return value;
}

/// `E` in memory, `F` where it is computed.
template <typename E, typename F, typename Widen, typename Narrow>
Bytes each(const Reduction& what, const std::vector<Bytes>& inputs, std::size_t count, Widen widen,
           Narrow narrow) {
  Bytes out(count * sizeof(E));
  std::vector<F> values(inputs.size());
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < inputs.size(); ++k) values[k] = widen(element<E>(inputs[k], i));
    E result;
    if constexpr (std::is_floating_point_v<F>) {
      result = narrow(reduced<F>(what, values));
    } else {
      result = narrow(reduced_integers<F>(what, values));
    }
    std::memcpy(out.data() + i * sizeof(E), &result, sizeof(E));
  }
  return out;
}

template <typename E>
Bytes plain(const Reduction& what, const std::vector<Bytes>& inputs, std::size_t count) {
  const auto same = [](E value) { return value; };
  return each<E, E>(what, inputs, count, same, same);
}

double ordinary(std::mt19937_64& random) {
  return std::uniform_real_distribution<double>(-40, 40)(random);
}

}  // namespace

std::uint16_t half_of(float value) {
  return narrowed(value, 10, -14, 31);
}

float from_half(std::uint16_t half) {
  return widened(half, 10, -14, 31);
}

std::uint16_t bfloat_of(float value) {
  return narrowed(value, 7, -126, 255);
}

float from_bfloat(std::uint16_t bfloat) {
  return widened(bfloat, 7, -126, 255);
}

Bytes reference(const Reduction& what, const std::vector<Bytes>& inputs, std::size_t count) {
  switch (what.dtype) {
    case DType::u8:
      return plain<std::uint8_t>(what, inputs, count);
    case DType::i8:
      return plain<std::int8_t>(what, inputs, count);
    case DType::u16:
      return plain<std::uint16_t>(what, inputs, count);
    case DType::i16:
      return plain<std::int16_t>(what, inputs, count);
    case DType::i32:
      return plain<std::int32_t>(what, inputs, count);
    case DType::i64:
      return plain<std::int64_t>(what, inputs, count);
    case DType::f16:
      return each<std::uint16_t, float>(what, inputs, count, from_half, half_of);
    case DType::f32:
      return plain<float>(what, inputs, count);
    case DType::f64:
      return plain<double>(what, inputs, count);
    case DType::bf16:
      return each<std::uint16_t, float>(what, inputs, count, from_bfloat, bfloat_of);
    case DType::boolean: {
      auto truths = inputs;
      for (auto& input : truths) {
        for (auto& value : input) value = value != 0 ? 1 : 0;
      }
      return plain<std::uint8_t>(what, truths, count);
    }
  }
  return {};
}

Bytes random_elements(DType dtype, std::size_t count, std::mt19937_64& random) {
  const std::size_t size = runtime::size_of(dtype);
  Bytes out(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = random();
    if (random() % 2 == 0) {
      const double value = ordinary(random);
      const auto single = static_cast<float>(value);
      if (dtype == DType::f64) std::memcpy(&bits, &value, sizeof value);
      if (dtype == DType::f32) std::memcpy(&bits, &single, sizeof single);
      if (dtype == DType::f16) bits = half_of(single);
      if (dtype == DType::bf16) bits = bfloat_of(single);
      if (dtype < DType::f16) bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    }
    std::memcpy(out.data() + i * size, &bits, size);  // little-endian: the low bytes come first
  }
  return out;
}

std::vector<Isa> isas() {
  std::vector<Isa> found;
  for (int i = 0; i < kernels::kIsas; ++i) {
    if (kernels::supported(static_cast<Isa>(i))) found.push_back(static_cast<Isa>(i));
  }
  return found;
}

}  // namespace horo::tests
