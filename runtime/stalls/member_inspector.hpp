// SPDX-License-Identifier: Apache-2.0
// What is known of the ranks of this host that keep others waiting.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.hpp"
#include "runtime/board/board.hpp"
#include "runtime/host/process_state.hpp"
#include "runtime/sets/set_table.hpp"
#include "runtime/stalls/stall_report.hpp"

namespace horo::runtime {

/// Reads processes and shared memory; owns nothing. Thread: any.
class MemberInspector {
 public:
  using ReadState = std::function<ProcessState(std::uint32_t pid)>;

  /// `sets` outlives this.
  explicit MemberInspector(const SetTable& sets, ReadState read_state = process_state)
      : sets_(sets), read_state_(std::move(read_state)) {}

  /// The set's members on this host.
  StallFacts facts_of(const ProcessSet& set, TimePoint now) const;

  /// The member's process cannot run: it is stopped, blocked in the kernel, or gone.
  bool cannot_run(const Board& board, int member) const;

 private:
  std::string tensor_waited_for(const ProcessSet& set, std::uint64_t word, SetId& in) const;

  const SetTable& sets_;
  const ReadState read_state_;
};

/// A caller of some member waits for a tensor, of this set or another. Thread: any.
bool any_member_waits(const Board& board);

}  // namespace horo::runtime
