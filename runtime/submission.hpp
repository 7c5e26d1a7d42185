// SPDX-License-Identifier: Apache-2.0
// What one rank gives when it submits a tensor.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "runtime/signature.hpp"

namespace horo::runtime {

struct Submission {
  const void* in = nullptr;
  void* out = nullptr;     ///< Null where the operation is to own its result.
  std::uint64_t room = 0;  ///< Bytes at `out`, for results whose size only the peers' parts decide.
  /// alltoall: rows for each rank, copied by the call; empty: the same for all.
  std::span<const std::int64_t> splits;
};

/// Whether `rank` of `size` may submit this for a tensor declared so.
/// Fails: invalid_argument (a missing or overlapping buffer; splits that are too many, too few,
/// negative, more than the tensor has, or given for another kind).
Status check(const Signature& signature, const Submission& submission, int rank, int size);

/// Whether the operation owns its result, or knows about it what nobody else does: it lives until
/// it is released.
constexpr bool keeps_result(Kind kind, const void* out) {
  return first_extent_is_free(kind) || kind == Kind::join ||
         (kind == Kind::reducescatter && out == nullptr);
}

/// Whether `[a, a + a_bytes)` and `[b, b + b_bytes)` share memory.
bool overlap(const void* a, std::uint64_t a_bytes, const void* b, std::uint64_t b_bytes);

}  // namespace horo::runtime
