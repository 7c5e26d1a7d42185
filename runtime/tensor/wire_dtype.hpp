// SPDX-License-Identifier: Apache-2.0
// In which type the elements of a float32 reduction travel between hosts. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/tensor/dtype.hpp"

namespace horo::runtime {

struct Signature;

enum class WireDType : std::uint8_t {
  none = 0,  ///< The tensor's own type: nothing is rounded.
  bf16 = 1,
  f16 = 2,
};

inline constexpr int kWireDTypes = 3;

/// The type of elements between hosts; `own` is the tensor's.
constexpr DType dtype_between_hosts(WireDType wire, DType own) {
  switch (wire) {
    case WireDType::none:
      return own;
    case WireDType::bf16:
      return DType::bf16;
    case WireDType::f16:
      return DType::f16;
  }
  return own;
}

/// A tensor that asks for nothing gets this: the knobs wire.dtype and wire.error.feedback.
struct WireRule {
  WireDType dtype = WireDType::none;
  bool feedback = false;
};

/// The rule leaves smaller tensors alone: the fixed cost of a message exceeds what they save, and
/// many are counts and metrics, which must not be rounded.
inline constexpr std::uint64_t kLeastByWireRule = 1024;

/// Whether elements of such a tensor can be rounded on their way: a sum or average of float32.
bool can_round_on_wire(const Signature& signature);

/// Gives a tensor that asks for nothing what the rule says.
void apply(const WireRule& rule, Signature& signature);

/// "none", "bfloat16", "bfloat16 with error feedback".
std::string describe_wire(const Signature& signature);

/// The signature of the 16-bit elements that move between hosts for such a tensor. They are scaled
/// before they are rounded, so nothing else has to scale them. Other tensors move as they are.
Signature moved_between_hosts(const Signature& signature);

}  // namespace horo::runtime
