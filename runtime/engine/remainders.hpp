// SPDX-License-Identifier: Apache-2.0
// Error feedback: what the rounding for the way between hosts has left of each tensor's elements.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <unordered_map>

#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/tensor/signature.hpp"

namespace horo::runtime {

/// Owns this rank's remainders of one process set. A rank rounds only some elements of a tensor,
/// and memory that it has not used takes no space. Thread: the holder of the progress token;
/// backends use the memory while a bucket is in flight.
class Remainders {
 public:
  /// The remainders of a tensor, zeros at first: one for each element of the input, and behind them
  /// one for each element of the result. Another name in the slot, and another signature,
  /// begin again with zeros. Fails: out_of_memory.
  Result<float*> of(TensorId id, std::uint32_t incarnation, const Signature& signature) {
    auto& kept = kept_[id.value()];
    if (kept.memory != nullptr && kept.incarnation == incarnation && kept.signature == signature)
      return kept.memory.get();
    kept.memory.reset();
    kept.memory.reset(static_cast<float*>(std::calloc(2 * signature.elements, sizeof(float))));
    kept.incarnation = incarnation;
    kept.signature = signature;
    if (kept.memory != nullptr) return kept.memory.get();
    return fail(Errc::out_of_memory,
                "{} bytes for the error feedback of {} cannot be allocated; switch it off with "
                "HORO_WIRE_ERROR_FEEDBACK=0",
                2 * signature.elements * sizeof(float), describe(signature));
  }

  /// Frees what an earlier name in the slot, or an earlier signature, has left.
  void forget(TensorId id) {
    if (!kept_.empty()) kept_.erase(id.value());
  }

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };

  struct Kept {
    std::uint32_t incarnation = 0;
    Signature signature;
    std::unique_ptr<float, Free> memory;
  };

  std::unordered_map<std::uint32_t, Kept> kept_;
};

}  // namespace horo::runtime
