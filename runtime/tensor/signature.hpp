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
#include "runtime/tensor/dtype.hpp"
#include "runtime/tensor/memory_kind.hpp"
#include "runtime/tensor/mismatch_report.hpp"
#include "runtime/tensor/wire_dtype.hpp"

namespace horo::runtime {

enum class Kind : std::uint8_t {
  allreduce = 0,
  allgather = 1,
  broadcast = 2,
  barrier = 3,
  reducescatter = 4,
  alltoall = 5,
  join = 6,
};

std::string_view name(Kind kind);

/// Kinds that combine elements: op and factors count.
constexpr bool reduces(Kind kind) {
  return kind == Kind::allreduce || kind == Kind::reducescatter;
}

/// Kinds without data.
constexpr bool moves_nothing(Kind kind) {
  return kind == Kind::barrier || kind == Kind::join;
}

/// Kinds whose first extent may differ between ranks.
constexpr bool first_extent_is_free(Kind kind) {
  return kind == Kind::allgather || kind == Kind::alltoall;
}

struct Signature {
  static constexpr int kDims =
      8;  ///< Extents kept one by one; further ones count in `extents_hash`.

  Kind kind = Kind::allreduce;
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::f32;
  std::uint8_t ndim = 0;
  std::int32_t root = 0;  ///< For kinds without a root: the fusion class, see set_fusion_class().
  double prescale = 1;
  double postscale = 1;
  std::uint64_t elements = 1;
  std::uint64_t row_elements = 1;  ///< In one row: the product of all extents but the first.
  std::uint64_t extents_hash = 0;  ///< Hash of all extents but the first.
  std::array<std::int64_t, kDims> extents{};
  WireDType wire = WireDType::none;
  std::uint8_t feedback = 0;  ///< 1: what the rounding leaves is added to the next submission.
  MemoryKind memory = MemoryKind::host;
  std::array<std::uint8_t, 5> unused{};  ///< Named, so that every byte is defined.

  std::uint64_t bytes() const { return elements * size_of(dtype); }

  /// The first extent; a scalar is one row.
  std::uint64_t rows() const { return ndim == 0 ? 1 : static_cast<std::uint64_t>(extents[0]); }

  friend bool operator==(const Signature&, const Signature&) = default;
};

inline constexpr std::uint64_t kMostElements = std::uint64_t{1} << 56U;

/// Whether the values are ones that set_shape() and callers of this library could have made.
/// Checked for signatures that another process has written: kinds, types and operations index
/// tables.
bool is_possible(const Signature& signature);

/// Lets a tensor fuse only with those that were given the same `name`, for example that of their
/// group. A broadcast is left as it is. Ranks may differ in it: it is no part of what they agree
/// on.
void set_fusion_class(Signature& signature, std::string_view name);

/// Fills `elements`, `row_elements`, `extents` and their hash from a shape. Fails: invalid_argument
/// (negative extent, more elements than memory could hold, more than 255 dimensions).
Status set_shape(Signature& signature, std::span<const std::int64_t> shape);

/// True when ranks with these signatures can run one operation together: equal, but for the first
/// extent where that is free and what a kind does not use.
bool compatible(const Signature& a, const Signature& b);

/// The first difference, with both values for people: {dtype, "float32", "float64"}. The subject is
/// `none` when the signatures are compatible.
struct Difference {
  ErrorSubject subject = ErrorSubject::none;
  std::string a;
  std::string b;
};

Difference difference(const Signature& a, const Signature& b);

/// "allreduce of float32 [64, 3]"
std::string describe(const Signature& signature);

/// Whether a rank without the tensor can take part: there is an element that changes no result.
bool possible_with_joined(const Signature& signature);

/// Why it cannot. `joined` names the `count` ranks that have joined.
MismatchReport joined_report(std::string_view tensor, const Signature& signature,
                             std::string_view joined, int count);

/// Whether there is such an operation: kind, dtype, op, dimensions and factors go together.
/// Fails: invalid_argument, unsupported, both saying what to do instead.
Status check_supported(const Signature& signature);

/// Rows that one rank gets when `rows` are dealt out to `ranks` in rank order: those that are over
/// go to the first ranks, one each.
struct Share {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

constexpr Share share_of(std::uint64_t rows, int ranks, int rank) {
  const auto n = static_cast<std::uint64_t>(ranks);
  const auto r = static_cast<std::uint64_t>(rank);
  const auto over = rows % n;
  return {.first = rows / n * r + (r < over ? r : over), .count = rows / n + (r < over ? 1 : 0)};
}

}  // namespace horo::runtime
