// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/fusion_key.hpp"

#include <bit>

namespace horo::runtime {

namespace {

std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ULL + (h << 6U) + (h >> 2U);
  return h * 0xff51afd7ed558ccdULL;
}

}  // namespace

std::uint64_t fusion_key(const Signature& s) {
  if (moves_nothing(s.kind)) return 0;
  std::uint64_t h =
      mix(static_cast<std::uint64_t>(s.kind) + 1, static_cast<std::uint64_t>(s.dtype));
  if (s.memory != MemoryKind::host) h = mix(h, static_cast<std::uint64_t>(s.memory));
  if (s.kind == Kind::broadcast || s.root != 0) h = mix(h, static_cast<std::uint64_t>(s.root));
  if (reduces(s.kind)) {
    h = mix(h, static_cast<std::uint64_t>(s.op));
    h = mix(h, std::bit_cast<std::uint64_t>(s.prescale));
    h = mix(h, std::bit_cast<std::uint64_t>(s.postscale));
    if (s.wire != WireDType::none) h = mix(h, static_cast<std::uint64_t>(s.wire));
  }
  return h | 1U;
}

}  // namespace horo::runtime
