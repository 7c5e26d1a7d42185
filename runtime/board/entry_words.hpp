// SPDX-License-Identifier: Apache-2.0
// How the words of a log entry are written; EntryLog::read is the other half.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "runtime/board/entry.hpp"

namespace horo::runtime {

inline void append_text(std::vector<std::uint64_t>& words, std::string_view text) {
  const auto start = words.size();
  words.resize(start + 1 + (text.size() + 7) / 8);
  words[start] = text.size();
  std::memcpy(words.data() + start + 1, text.data(), text.size());
}

inline void append_signature(std::vector<std::uint64_t>& words, const Signature& signature) {
  const auto start = words.size();
  words.resize(start + kSignatureWords);
  std::memcpy(words.data() + start, &signature, sizeof signature);
}

inline constexpr std::size_t kTuningWords = 3;

inline void append_tuning(std::vector<std::uint64_t>& words, const Tuning& tuning) {
  words.insert(words.end(), {tuning.fusion_threshold, tuning.cycle_ns, tuning.wake_delay_ns});
}

}  // namespace horo::runtime
