// SPDX-License-Identifier: Apache-2.0
#include "runtime/coordinator/stall_watch.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/ranges.h>

namespace horo::runtime {

namespace {

/// A look this late means that whoever was to take it stood still, and maybe everybody.
constexpr Duration kStandstill = std::chrono::seconds(1);

std::uint64_t in_ns(TimePoint t) {
  return static_cast<std::uint64_t>(t.time_since_epoch().count());
}

TimePoint at_ns(std::uint64_t ns) {
  return TimePoint(Duration(static_cast<Duration::rep>(ns)));
}

std::vector<std::size_t> positions(const std::vector<int>& members) {
  return {members.begin(), members.end()};
}

/// One look: what has become overdue since the last one, and when the next one is due.
class Look {
 public:
  Look(StallSchedule& schedule, const StallTimes& times, TimePoint now)
      : times_(times),
        now_(now),
        from_(at_ns(schedule.looked.load(std::memory_order_relaxed))),
        // What is almost overdue comes along, so that a step's tensors share a line.
        until_(now + times.warning / 8),
        since_(at_ns(schedule.since.load(std::memory_order_relaxed))),
        next_(now + times.warning) {
    schedule.looked.store(in_ns(until_), std::memory_order_relaxed);
  }

  enum class Finding { fine, overdue, too_long };

  /// Of what has been waiting since `began`.
  Finding judge(TimePoint began) {
    began = std::max(began, since_);
    const auto level = stall_level(until_ - began, times_.warning);
    next_ = std::min(next_, began + stall_threshold(level, times_.warning));
    if (times_.shutdown) {
      if (age(began) >= *times_.shutdown) return Finding::too_long;
      next_ = std::min(next_, began + *times_.shutdown);
    }
    return level > stall_level(from_ - began, times_.warning) ? Finding::overdue : Finding::fine;
  }

  Duration age(TimePoint began) const {
    return std::max(now_ - std::max(began, since_), Duration::zero());
  }

  void come_back_after(Duration d) { next_ = std::min(next_, now_ + d); }

  TimePoint next() const { return next_; }

 private:
  const StallTimes& times_;
  const TimePoint now_;
  const TimePoint from_;
  const TimePoint until_;
  const TimePoint since_;
  TimePoint next_;
};

}  // namespace

StallWatch::StallWatch(HostMemory& host, const ProcessSets& sets, const StallTimes& times,
                       ReadState read_state)
    : host_(host), sets_(sets), times_(times), read_state_(std::move(read_state)) {}

bool StallWatch::arm(Board& board, TimePoint now) {
  auto& due = board.body().stalls.due;
  if (!on() || due.load(std::memory_order_seq_cst) != 0) return false;
  std::uint64_t none = 0;
  const auto first = std::min(times_.warning, times_.shutdown.value_or(times_.warning));
  return due.compare_exchange_strong(none, in_ns(now + first), std::memory_order_seq_cst);
}

Duration StallWatch::until_due(TimePoint now) const {
  if (has_unsaid_.load(std::memory_order_seq_cst)) return Duration::zero();
  if (!on() || poison_of(host_.header()).cause != LossCause::none) return Duration::max();
  auto left = Duration::max();
  sets_.for_all_from_outside([&](const ProcessSet& set) {
    if (!looks_at(set)) return;
    const auto due = set.board->body().stalls.due.load(std::memory_order_seq_cst);
    if (due != 0) left = std::min(left, std::max(at_ns(due) - now, Duration::zero()));
  });
  return left;
}

StallFindings StallWatch::look(TimePoint now) {
  StallFindings findings;
  if (!on() || poison_of(host_.header()).cause != LossCause::none) return findings;
  sets_.for_all_from_outside([&](const ProcessSet& set) {
    if (looks_at(set)) look_at(set, now, findings);
  });
  return findings;
}

bool StallWatch::helpless(const Board& board, int member) const {
  switch (read_state_(board.rank_slot(member).pid.load(std::memory_order_relaxed))) {
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

void StallWatch::look_at(const ProcessSet& set, TimePoint now, StallFindings& findings) {
  auto& board = *set.board;
  auto& schedule = board.body().stalls;
  auto due = schedule.due.load(std::memory_order_seq_cst);
  if (due == 0 || now < at_ns(due)) return;
  const auto late = now - at_ns(due);
  if (!schedule.due.compare_exchange_strong(due, in_ns(now + times_.warning),
                                            std::memory_order_seq_cst))
    return;  // Another rank looks.
  if (late > std::max(kStandstill, times_.warning / 4))
    schedule.since.store(in_ns(now), std::memory_order_relaxed);

  const auto way = board.under_way();
  if (way.progress != schedule.progress.load(std::memory_order_relaxed)) {
    schedule.progress.store(way.progress, std::memory_order_relaxed);
    schedule.moved_at.store(in_ns(now), std::memory_order_relaxed);
  }
  const auto moved_at = at_ns(schedule.moved_at.load(std::memory_order_relaxed));
  const auto pending = board.unfinished();
  const bool stuck = way.entries != 0 && ((set.member() && set.engine->active()) ||
                                          board.has_ready() || anybody_waits(board));
  if (pending.empty() && !stuck) {
    // Whoever marks now finds that nothing is due, or this finds the mark.
    schedule.due.exchange(0, std::memory_order_seq_cst);
    if (!board.unfinished().empty()) arm(board, now);
    return;
  }

  Look look(schedule, times_, now);
  if (way.entries != 0) look.come_back_after(times_.warning / 4);
  Found found;
  const auto sort_in = [&](TimePoint began, auto make) {
    const auto finding = look.judge(began);
    if (finding == Look::Finding::overdue) found.overdue.push_back(make());
    if (finding == Look::Finding::too_long) found.too_long.push_back(make());
  };
  for (const auto& one : pending) {
    // Whoever cuts takes microseconds, unless it does not run.
    if (one.ready && !helpless(board, one.missing.front())) continue;
    // A rank that has joined waits as long as the others have work.
    const auto began = one.join ? std::max(at_ns(one.since), moved_at) : at_ns(one.since);
    sort_in(began, [&] {
      Stalled s{.name = std::string(board.tensor_name(one.id)),
                .age = look.age(began),
                .missing = positions(one.missing),
                .group = std::string(board.group_name(one.group))};
      for (const int m : one.missing) {
        if (s.group.empty() && !one.ready && !board.has_declared(one.id, m))
          s.undeclared.push_back(static_cast<std::size_t>(m));
      }
      return s;
    });
  }
  if (stuck) {
    auto lacking = way.last;
    std::vector<int> cannot;
    std::copy_if(way.behind.begin(), way.behind.end(), std::back_inserter(cannot),
                 [&](int m) { return helpless(board, m); });
    if (!cannot.empty()) lacking = cannot;
    for (const auto& name : way.names) {
      sort_in(moved_at, [&] {
        return Stalled{.name = name,
                       .age = look.age(moved_at),
                       .missing = positions(lacking),
                       .under_way = true};
      });
    }
  }
  schedule.due.store(in_ns(look.next()), std::memory_order_seq_cst);
  judge(set, std::move(found), now, findings);
}

void StallWatch::judge(const ProcessSet& set, Found&& found, TimePoint now,
                       StallFindings& findings) const {
  if (found.overdue.empty() && found.too_long.empty()) return;
  if (set.board->spans()) {
    ask(set.between_hosts, std::move(found.overdue), false, findings);
    ask(set.between_hosts, std::move(found.too_long), true, findings);
    return;
  }
  auto facts = gather(set, now);
  if (!found.too_long.empty()) {
    const auto& missing = found.too_long.front().missing;
    if (!missing.empty()) findings.culprit = facts.members[missing.front()].rank;
    facts.tensors = std::move(found.too_long);
    findings.end = end_text(facts);
    return;
  }
  facts.tensors = std::move(found.overdue);
  for (auto& line : stall_lines(facts)) findings.lines.push_back(std::move(line));
}

bool StallWatch::anybody_waits(const Board& board) const {
  for (int m = 0; m < board.local_size(); ++m) {
    if (board.host_rank(m).waits_for.load(std::memory_order_relaxed) != 0) return true;
  }
  return false;
}

std::string StallWatch::tensor_waited_for(const ProcessSet& set, std::uint64_t word,
                                          SetId& in) const {
  if (word == 0) return {};
  in = SetId{static_cast<std::uint32_t>(word >> 32U)};
  const auto* other = in == set.id ? &set : sets_.find(in);
  const TensorId id{static_cast<std::uint32_t>(word) - 1};
  if (other == nullptr || !other->member() ||
      id.value() >= std::min(other->board->body().tensor_count.load(std::memory_order_acquire),
                             other->board->params().capacity))
    return "?";
  return std::string(other->board->tensor_name(id));
}

StallFacts StallWatch::gather(const ProcessSet& set, TimePoint now) const {
  auto& board = *set.board;
  StallFacts facts{.set = set.id};
  for (int m = 0; m < board.local_size(); ++m) {
    const auto& slot = board.rank_slot(m);
    const auto& rank = board.host_rank(m);
    MemberFacts member{.rank = board.global_rank(m),
                       .state = slot.state.load(std::memory_order_relaxed),
                       .process = read_state_(slot.pid.load(std::memory_order_relaxed))};
    const auto last = rank.last_call.load(std::memory_order_relaxed);
    if (last != 0) member.idle = std::max(now - at_ns(last), Duration(1));
    member.waits_for =
        tensor_waited_for(set, rank.waits_for.load(std::memory_order_relaxed), member.waits_in);
    facts.members.push_back(std::move(member));
  }
  return facts;
}

std::string StallWatch::end_text(const StallFacts& facts) const {
  return fmt::format(
      "stalled for longer than the {} s of stall.shutdown.time: {}",
      std::chrono::duration<double>(times_.shutdown.value_or(Duration::zero())).count(),
      fmt::join(stall_lines(facts), "; "));
}

void StallWatch::end_job(const StallFindings& findings) {
  if (!host_.say_stall(findings.end)) return;
  poison_board(host_.header(), {.rank = findings.culprit, .cause = LossCause::stalled}, "");
}

}  // namespace horo::runtime
