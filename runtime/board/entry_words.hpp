// SPDX-License-Identifier: Apache-2.0
// How the words of a log entry are written; EntryLog::read is the other half.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "runtime/board/entry.hpp"

namespace horo::runtime {

/// Words that so many bytes take.
constexpr std::size_t words_of(std::size_t bytes) {
  return (bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
}

inline void append_bytes(std::vector<std::uint64_t>& words, std::string_view bytes) {
  const auto start = words.size();
  words.resize(start + words_of(bytes.size()));
  std::memcpy(words.data() + start, bytes.data(), bytes.size());
}

inline void append_text(std::vector<std::uint64_t>& words, std::string_view text) {
  words.push_back(text.size());
  append_bytes(words, text);
}

inline void append_signature(std::vector<std::uint64_t>& words, const Signature& signature) {
  const auto start = words.size();
  words.resize(start + kSignatureWords);
  std::memcpy(words.data() + start, &signature, sizeof signature);
}

inline constexpr std::size_t kTuningWords = 4;

inline void append_tuning(std::vector<std::uint64_t>& words, const Tuning& tuning) {
  words.insert(words.end(), {tuning.fusion_threshold, tuning.cycle_ns, tuning.wake_delay_ns,
                             tuning.small_message});
}

}  // namespace horo::runtime
