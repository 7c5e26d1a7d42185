// SPDX-License-Identifier: Apache-2.0
// What frames carry: limits, numbers of tensors, and the signatures that ranks declare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "runtime/tensor/signature.hpp"
#include "runtime/tree/frames/rank_ranges.hpp"

namespace horo::runtime::tree {

inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::size_t kMostPayload = std::size_t{16} << 20U;
inline constexpr std::uint32_t kMostTensors = 1U << 20U;  ///< Names of one process set at a time.
inline constexpr std::size_t kMostNameBytes = 4096;
inline constexpr std::size_t kMostTextBytes = 8192;
inline constexpr std::size_t kMostHostName = 256;
inline constexpr std::size_t kMostAsked = 32;    ///< Names of one question.
inline constexpr std::size_t kMostVerdicts = 8;  ///< Verdicts of one answer.
inline constexpr std::size_t kMostVerdictBytes = 512;

/// A name's agreed number is a place, below kMostTensors, plus kMostTensors times how often that
/// place has been reused. So a number of an evicted name is never mistaken for its successor's.
inline constexpr std::uint32_t kNoNumber = 0xffffffffU;

constexpr std::size_t place_of_number(std::uint32_t number) {
  return number % kMostTensors;
}

using Ids = std::vector<std::uint32_t>;  ///< Agreed numbers of tensors, ascending, each once.

/// Compares every field, so that equal submissions of many ranks become one.
struct SignatureOrder {
  bool operator()(const std::optional<Signature>& a, const std::optional<Signature>& b) const;
};

/// The signatures that ranks declare for a tensor, each with its ranks. No signature: the one that
/// these ranks agreed to last.
using Variants = std::map<std::optional<Signature>, RankRanges, SignatureOrder>;

}  // namespace horo::runtime::tree
