// SPDX-License-Identifier: Apache-2.0
#include "runtime/stalls/member_inspector.hpp"

#include <algorithm>

namespace horo::runtime {

bool MemberInspector::cannot_run(const Board& board, int member) const {
  switch (read_state_(board.region().rank_slot(member).pid.load(std::memory_order_relaxed))) {
    case ProcessState::stopped:
    case ProcessState::traced:
    case ProcessState::blocked:
    case ProcessState::gone:
      return true;
    case ProcessState::unknown:
    case ProcessState::running:
    case ProcessState::sleeping:
      break;
  }
  return false;
}

std::string MemberInspector::tensor_waited_for(const ProcessSet& set, std::uint64_t word,
                                               SetId& in) const {
  if (word == 0) return {};
  in = SetId{static_cast<std::uint32_t>(word >> 32U)};
  const TensorId id{static_cast<std::uint32_t>(word) - 1};
  std::string name = "?";
  const auto look = [&](const ProcessSet& other) {
    if (other.member() && id.value() < other.board->region().tensor_count())
      name = other.board->region().tensor_name(id);
  };
  if (in == set.id) {
    look(set);
  } else {
    sets_.use_from_outside(in, look);
  }
  return name;
}

StallFacts MemberInspector::facts_of(const ProcessSet& set, TimePoint now) const {
  auto& board = *set.board;
  StallFacts facts{.set = set.id};
  for (int m = 0; m < board.region().local_size(); ++m) {
    const auto& slot = board.region().rank_slot(m);
    const auto& rank = board.region().host_rank(m);
    MemberFacts member{.rank = board.region().global_rank(m),
                       .state = slot.state.load(std::memory_order_relaxed),
                       .process = read_state_(slot.pid.load(std::memory_order_relaxed))};
    const auto last = rank.last_call.load(std::memory_order_relaxed);
    if (last != 0) {
      const TimePoint called(Duration(static_cast<Duration::rep>(last)));
      member.idle = std::max(now - called, Duration(1));
    }
    member.waits_for =
        tensor_waited_for(set, rank.waits_for.load(std::memory_order_relaxed), member.waits_in);
    facts.members.push_back(std::move(member));
  }
  return facts;
}

bool any_member_waits(const Board& board) {
  for (int m = 0; m < board.region().local_size(); ++m) {
    if (board.region().host_rank(m).waits_for.load(std::memory_order_relaxed) != 0) return true;
  }
  return false;
}

}  // namespace horo::runtime
