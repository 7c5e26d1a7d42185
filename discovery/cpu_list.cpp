// SPDX-License-Identifier: Apache-2.0
#include "discovery/cpu_list.hpp"

#include <charconv>

namespace horo::discovery {

std::vector<int> parse_cpus(std::string_view list) {
  constexpr int kMost = 1 << 16;
  std::vector<int> numbers;
  while (!list.empty()) {
    int first = 0;
    const char* end = list.data() + list.size();
    auto read = std::from_chars(list.data(), end, first);
    if (read.ec != std::errc{}) break;
    int last = first;
    if (read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc{} || first < 0 || last >= kMost) break;
    for (int number = first; number <= last; ++number) numbers.push_back(number);
    list.remove_prefix(static_cast<std::size_t>(read.ptr - list.data()));
    if (!list.starts_with(',')) break;
    list.remove_prefix(1);
  }
  return numbers;
}

}  // namespace horo::discovery
