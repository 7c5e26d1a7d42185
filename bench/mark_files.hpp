// SPDX-License-Identifier: Apache-2.0
// Files by which ranks tell their script how far they are.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace horo::bench {

/// The monotonic clock that all processes of the machine share, also Python's time.monotonic_ns().
inline std::int64_t monotonic_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

/// Creates a file atomically with all of `text`.
inline bool write_mark(const std::string& path, const std::string& text) {
  const std::string draft = path + ".draft";
  std::FILE* file = std::fopen(draft.c_str(), "w");
  if (file == nullptr) return false;
  const bool written = std::fputs(text.c_str(), file) >= 0;
  return std::fclose(file) == 0 && written && std::rename(draft.c_str(), path.c_str()) == 0;
}

}  // namespace horo::bench
