// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/frames/frame_values.hpp"

#include <bit>
#include <tuple>

namespace horo::runtime::tree {

bool SignatureOrder::operator()(const std::optional<Signature>& a,
                                const std::optional<Signature>& b) const {
  if (!a || !b) return !a && b;
  const auto fields = [](const Signature& s) {
    return std::tuple(s.kind, s.dtype, s.op, s.wire, s.feedback, s.memory, s.ndim, s.root,
                      std::bit_cast<std::uint64_t>(s.prescale),
                      std::bit_cast<std::uint64_t>(s.postscale), s.elements, s.extents_hash,
                      s.extents);
  };
  return fields(*a) < fields(*b);
}

}  // namespace horo::runtime::tree
