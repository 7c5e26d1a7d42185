// SPDX-License-Identifier: Apache-2.0
// Notes which tensors a training reduces, so that a later job with the same ones can be recognised.
// Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/strong.hpp"

namespace horo::runtime::tuning {

/// The facts about a tensor that are the same in another job.
struct TensorTraits {
  std::uint64_t hash = 0;  ///< A hash of its name, type and size.
  std::uint64_t bytes = 0;
};

using TraitsOf = std::function<TensorTraits(TensorId)>;

/// Thread: owner.
class TensorCensus {
 public:
  void count(std::span<const TensorId> ids);

  /// "52 tensors, 3150000 bytes, 1f2e3d4c": the tensors that come in most steps, whatever their
  /// order. Others, such as a broadcast at the start, are left out.
  std::string signature(const TraitsOf& traits) const;

 private:
  /// How often the tensor of the middle occurrence came. Many tensors that came once weigh little.
  std::uint32_t usual_times() const;

  std::vector<std::uint32_t> times_;  ///< By tensor.
};

/// FNV-1a over 64 bits, continued from `hash`.
std::uint64_t hash_more(std::uint64_t hash, std::string_view bytes);

inline constexpr std::uint64_t kHashStart = 0xcbf29ce484222325;

}  // namespace horo::runtime::tuning
