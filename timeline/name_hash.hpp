// SPDX-License-Identifier: Apache-2.0
// By which a declare record says which name it was of: the name table has only the newest of a
// number.
#pragma once

#include <cstdint>
#include <string_view>

namespace horo::timeline {

/// FNV-1a. Never 0, which records have that say nothing.
constexpr std::uint64_t hash_of_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash | 1;
}

}  // namespace horo::timeline
