// SPDX-License-Identifier: Apache-2.0
// Helpers of the functions that make schedules: the layout of staging memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "runtime/backends/flat/schedule.hpp"
#include "runtime/tensor/tuning.hpp"

namespace horo::runtime {

/// One more message costs as much time as this many bytes, where nothing else is known.
inline constexpr std::uint64_t kSmallMessage = kUsualSmallMessage;

/// Allocates areas behind the input, each on cache lines of its own.
class Areas {
 public:
  explicit Areas(std::uint64_t input) : end_(input) {}

  std::uint64_t take(std::uint64_t bytes) {
    const auto begin = (end_ + kLine - 1) / kLine * kLine;
    end_ = begin + bytes;
    return begin;
  }

  std::uint64_t end() const { return end_; }

 private:
  static constexpr std::uint64_t kLine = 64;
  std::uint64_t end_;
};

/// Whether all inputs of an element must go into one reduction.
inline bool needs_rank_order(const Mesh& mesh, Partial partial) {
  constexpr int kFew = 16;
  return mesh.rank_order || partial == Partial::wrong ||
         (partial == Partial::rounded && mesh.size <= kFew);
}

/// Removes messages without bytes and reductions without elements; numbers the messages.
inline void finish(Schedule& plan) {
  std::map<int, std::uint32_t> sent;
  std::map<int, std::uint32_t> received;
  for (auto& round : plan.rounds) {
    std::erase_if(round.sends, [](const Transfer& t) { return t.bytes == 0; });
    std::erase_if(round.receives, [](const Transfer& t) { return t.bytes == 0; });
    std::erase_if(round.combines, [](const Combine& c) { return c.elements == 0; });
    for (auto& transfer : round.sends) transfer.number = sent[transfer.peer]++;
    for (auto& transfer : round.receives) transfer.number = received[transfer.peer]++;
  }
}

}  // namespace horo::runtime
