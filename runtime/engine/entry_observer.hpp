// SPDX-License-Identifier: Apache-2.0
// Follows the entries of one process set on one rank.
#pragma once

#include <cstdint>
#include <span>

#include "base/strong.hpp"
#include "runtime/engine/agreement/agreement.hpp"
#include "runtime/tensor/tuning.hpp"

namespace horo::runtime {

/// Hears of an engine's entries, and may ask for another tuning. Thread: the holder of the progress
/// token.
class EntryObserver {
 public:
  virtual ~EntryObserver() = default;

  /// An entry is done. `ids`: the tensors that this rank has submitted, none for some kinds.
  virtual void finished(std::span<const TensorId> ids, std::uint64_t bytes) = 0;

  /// The rank uses `tuning` for the entries that begin from here on.
  virtual void changed(const Tuning& tuning) = 0;

  /// An entry begins in which a joined rank takes part, or the ranks end their joins: the steps
  /// around it are not like others.
  virtual void disturbed() = 0;

  /// The rank makes progress: now the observer may ask for another tuning. True when it did.
  virtual bool advance(Agreement& agreement) = 0;
};

}  // namespace horo::runtime
