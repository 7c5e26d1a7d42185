// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/huge_pages.hpp"

#include <fstream>
#include <string>
#include <sys/mman.h>

namespace horo::runtime {

namespace {

constexpr const char* kGrant = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

}  // namespace

HugePages parse_huge_pages(std::string_view text) {
  // The word in force is in brackets: "always within_size advise [never] deny force".
  for (const std::string_view word : {"[always]", "[within_size]", "[force]"}) {
    if (text.find(word) != std::string_view::npos) return HugePages::always;
  }
  return text.find("[advise]") != std::string_view::npos ? HugePages::on_request
                                                         : HugePages::refused;
}

HugePages huge_pages() {
  static const HugePages granted = [] {
    std::string line;
    std::ifstream file(kGrant);
    std::getline(file, line);
    return parse_huge_pages(line);
  }();
  return granted;
}

std::string_view describe(HugePages granted) {
  switch (granted) {
    case HugePages::refused:
      return "no huge pages (transparent_hugepage/shmem_enabled grants none)";
    case HugePages::on_request:
    case HugePages::always:
      break;
  }
  return "on huge pages";
}

void back_by_huge_pages(std::byte* memory, std::uint64_t bytes) {
  if (huge_pages() == HugePages::refused) return;
  const auto start = reinterpret_cast<std::uintptr_t>(memory);
  const auto first = (start + kHugePage - 1) / kHugePage * kHugePage;
  const auto last = (start + bytes) / kHugePage * kHugePage;
  if (last <= first) return;
  auto* const inside = memory + (first - start);
  // A page is a huge one only if it is first touched through memory that asks for it.
  if (madvise(inside, last - first, MADV_HUGEPAGE) == 0)
    madvise(inside, last - first, MADV_POPULATE_WRITE);
}

}  // namespace horo::runtime
