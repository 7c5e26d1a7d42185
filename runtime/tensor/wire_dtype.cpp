// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/wire_dtype.hpp"

#include "runtime/tensor/signature.hpp"

namespace horo::runtime {

bool can_round_on_wire(const Signature& s) {
  return reduces(s.kind) && s.dtype == DType::f32 &&
         (s.op == ReduceOp::sum || s.op == ReduceOp::average);
}

void apply(const WireRule& rule, Signature& s) {
  if (!can_round_on_wire(s) || s.elements < kLeastByWireRule) return;
  s.wire = rule.dtype;
}

std::string describe_wire(const Signature& s) {
  if (s.wire == WireDType::none) return "none";
  std::string text(name(dtype_between_hosts(s.wire, s.dtype)));
  if (s.feedback != 0) text += " with error feedback";
  return text;
}

Signature moved_between_hosts(const Signature& s) {
  auto moved = s;
  if (s.wire == WireDType::none) return moved;
  moved.dtype = dtype_between_hosts(s.wire, s.dtype);
  moved.prescale = 1;
  moved.wire = WireDType::none;
  return moved;
}

}  // namespace horo::runtime
