// SPDX-License-Identifier: Apache-2.0
// Huge pages for memory that ranks share. The kernel decides whether shared memory gets them, by
// /sys/kernel/mm/transparent_hugepage/shmem_enabled; most systems grant none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace horo::runtime {

inline constexpr std::uint64_t kHugePage = 2 << 20;  ///< Bytes, on most systems.

enum class HugePages : std::uint8_t {
  refused,
  on_request,  ///< For memory that a program asks for it.
  always,
};

/// Says what the text of the system's file means. Pure.
HugePages parse_huge_pages(std::string_view text);

/// Says what this system grants, which it reads once. Thread: any.
HugePages huge_pages();

/// For `horo check-build`.
std::string_view describe(HugePages granted);

/// Backs the whole huge pages inside [memory, memory + bytes) from the calling thread's memory
/// node, where the system grants any. It may back nothing: the caller allocates what is missing.
void back_by_huge_pages(std::byte* memory, std::uint64_t bytes);

}  // namespace horo::runtime
