// SPDX-License-Identifier: Apache-2.0
// One rank's buffers for one collective.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "runtime/tensor/signature.hpp"

namespace horo::runtime {

struct Submission {
  const void* in = nullptr;
  void* out = nullptr;     ///< Null: the operation owns its result.
  std::uint64_t room = 0;  ///< Bytes at `out`, where the result's size depends on the peers' parts.
  /// alltoall: rows for each rank, copied by the call; empty: the same number for all.
  std::span<const std::int64_t> splits;
  MemoryKind memory = MemoryKind::host;  ///< It holds `in` and `out`.
  int device = -1;                       ///< Whose memory it is.
  /// A stream of that device: what was put on it before has written `in` and has left `out`. Null:
  /// its default stream.
  void* stream = nullptr;
};

/// Whether rank `rank` of `size` may submit this for a tensor with this signature. Fails:
/// invalid_argument (a missing or overlapping buffer; another kind of memory than was declared; too
/// many or too few splits, negative ones, more rows than the tensor has, or splits for another
/// kind).
Status check(const Signature& signature, const Submission& submission, int rank, int size);

/// Whether the operation owns its result, or alone knows the result's size: then it lives until it
/// is released.
constexpr bool keeps_result(Kind kind, const void* out) {
  return first_extent_is_free(kind) || kind == Kind::join ||
         (kind == Kind::reducescatter && out == nullptr);
}

/// Whether `[a, a + a_bytes)` and `[b, b + b_bytes)` share memory.
bool overlap(const void* a, std::uint64_t a_bytes, const void* b, std::uint64_t b_bytes);

}  // namespace horo::runtime
