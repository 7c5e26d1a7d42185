// SPDX-License-Identifier: Apache-2.0
// The signatures that a set's tensors have, each stored about once: a model has thousands of
// tensors and a few dozen shapes.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "runtime/host/set_region.hpp"

namespace horo::runtime {

/// Owns the region's signatures. Tensors and ranks hold their numbers; 0 stands for none.
/// Signatures are made and freed under the directory's lock. A reader's signature cannot be freed:
/// the reader has declared it, or a tensor stays incomplete whose rank has. Thread: any, except
/// intern().
class SignatureTable {
 public:
  explicit SignatureTable(const SetRegion& region) : region_(region) {}

  /// The signature with this number; one without elements when there is none.
  const Signature& of(std::uint32_t number) const;

  /// Number of what a member has declared. Equal numbers mean equal signatures on all ranks.
  std::uint32_t number(TensorId id, int member) const {
    return region_.rank_tensor(id, member).signature.load(std::memory_order_relaxed);
  }

  bool has_declared(TensorId id, int member) const { return number(id, member) != 0; }

  /// The signature that a member has declared.
  const Signature& declared(TensorId id, int member) const { return of(number(id, member)); }

  /// The signature that all ranks agreed on last; before that, the one that the first rank
  /// declared.
  const Signature& agreed(TensorId id) const {
    return of(region_.tensor(id).signature.load(std::memory_order_relaxed));
  }

  /// The number of `signature`, which is added if it is not found. `likely` is tried first.
  /// Thread: the holder of the directory's lock. Fails: out_of_memory, protocol.
  Result<std::uint32_t> intern(const Signature& signature, std::uint32_t likely);

 private:
  Result<std::uint32_t> take();
  void free_unused();

  const SetRegion& region_;
};

}  // namespace horo::runtime
