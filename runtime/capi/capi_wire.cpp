// SPDX-License-Identifier: Apache-2.0
// The C ABI's way to say in which type elements travel between hosts.
#include "runtime/capi/capi_support.hpp"

namespace horo::runtime::capi {

namespace {

Status set_dtype(horo_wire_dtype given, const WireRule& rule, Signature& signature) {
  switch (given) {
    case HORO_WIRE_DEFAULT:
      apply(rule, signature);
      return {};
    case HORO_WIRE_NONE:
      return {};
    case HORO_WIRE_BFLOAT16:
      signature.wire = WireDType::bf16;
      return {};
    case HORO_WIRE_FLOAT16:
      signature.wire = WireDType::f16;
      return {};
  }
  return fail(Errc::invalid_argument,
              "wire_dtype {} is not one of HORO_WIRE_DEFAULT ... HORO_WIRE_FLOAT16",
              static_cast<int>(given));
}

}  // namespace

Status set_wire(const horo_tensor_desc& desc, const WireRule& rule, Signature& signature) {
  HORO_TRY_STATUS(set_dtype(desc.wire_dtype, rule, signature));
  if (desc.wire_feedback < -1 || desc.wire_feedback > 1) {
    return fail(Errc::invalid_argument,
                "wire_feedback {} is not 1 (yes), -1 (no) or 0 (as the knob)", desc.wire_feedback);
  }
  const bool wanted = desc.wire_feedback == 0 ? rule.feedback : desc.wire_feedback > 0;
  // Where nothing is rounded there is nothing to feed back, and ranks may differ in the wish.
  signature.feedback = wanted && signature.wire != WireDType::none ? 1 : 0;
  return {};
}

}  // namespace horo::runtime::capi
