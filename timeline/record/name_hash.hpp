// SPDX-License-Identifier: Apache-2.0
// The hash of a tensor's name in a declare record. The name table keeps only the newest name of
// each tensor number, so the hash tells whether a record is about that name.
#pragma once

#include <cstdint>
#include <string_view>

namespace horo::timeline {

/// FNV-1a with the lowest bit set: 0 means that a record has no hash.
constexpr std::uint64_t hash_of_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash | 1;
}

}  // namespace horo::timeline
