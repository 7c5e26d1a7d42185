// SPDX-License-Identifier: Apache-2.0
// What ranks must agree on about a tensor. Plain bytes: it lies in shared memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "runtime/dtype.hpp"

namespace horo::runtime {

enum class Kind : std::uint8_t { allreduce = 0, allgather = 1, broadcast = 2, barrier = 3 };

std::string_view name(Kind kind);

struct Signature {
  static constexpr int kDims =
      8;  ///< Extents kept one by one; further ones count in `extents_hash`.

  Kind kind = Kind::allreduce;
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::f32;
  std::uint8_t ndim = 0;
  std::int32_t root = 0;
  double prescale = 1;
  double postscale = 1;
  std::uint64_t elements = 1;
  std::uint64_t extents_hash = 0;  ///< Of all extents but the first.
  std::array<std::int64_t, kDims> extents{};

  std::uint64_t bytes() const { return elements * size_of(dtype); }

  /// Elements of one row: all extents but the first.
  std::uint64_t row_elements() const;

  friend bool operator==(const Signature&, const Signature&) = default;
};

/// Fills `elements`, `extents` and their hash from a shape. Fails: invalid_argument (negative
/// extent, more elements than memory could hold, more than 255 dimensions).
Status set_shape(Signature& signature, std::span<const std::int64_t> shape);

/// True when ranks with these signatures can run one operation together: equal, but for the first
/// extent of an allgather and what a kind does not use.
bool compatible(const Signature& a, const Signature& b);

/// What differs first, for people: {"dtype", "float32", "float64"}; empty name when compatible.
struct Difference {
  std::string_view what;
  std::string a;
  std::string b;
};

Difference difference(const Signature& a, const Signature& b);

/// "allreduce of float32 [64, 3]"
std::string describe(const Signature& signature);

}  // namespace horo::runtime
