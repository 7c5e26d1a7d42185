// SPDX-License-Identifier: Apache-2.0
#include "runtime/stalls/stall_watch.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/ranges.h>

#include "runtime/stalls/stall_questions.hpp"

namespace horo::runtime {

namespace {

/// A check that is this late means that the rank that was due stood still, and maybe all did.
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

}  // namespace

/// One check of a set: what has become overdue since the last one, and when the next one is due.
class StallWatch::Check {
 public:
  Check(StallSchedule& schedule, const StallTimes& times, TimePoint now)
      : times_(times),
        now_(now),
        from_(at_ns(schedule.looked.load(std::memory_order_relaxed))),
        // Tensors that are almost overdue are reported too, so that those of a step share a line.
        until_(now + times.warning / 8),
        since_(at_ns(schedule.since.load(std::memory_order_relaxed))),
        moved_at_(at_ns(schedule.moved_at.load(std::memory_order_relaxed))),
        next_(now + times.warning) {
    schedule.looked.store(in_ns(until_), std::memory_order_relaxed);
  }

  /// Adds what `make()` describes, which has been waiting since `began`, where it has passed a
  /// limit.
  template <typename Make>
  void sort_in(TimePoint began, Found& found, Make make) {
    began = std::max(began, since_);
    const auto level = stall_level(until_ - began, times_.warning);
    next_ = std::min(next_, began + stall_threshold(level, times_.warning));
    if (times_.shutdown) {
      if (age(began) >= *times_.shutdown) return found.too_long.push_back(make());
      next_ = std::min(next_, began + *times_.shutdown);
    }
    if (level > stall_level(from_ - began, times_.warning)) found.overdue.push_back(make());
  }

  Duration age(TimePoint began) const {
    return std::max(now_ - std::max(began, since_), Duration::zero());
  }

  void come_back_after(Duration d) { next_ = std::min(next_, now_ + d); }

  /// When the entries under way have last moved.
  TimePoint moved_at() const { return moved_at_; }

  TimePoint next() const { return next_; }

 private:
  const StallTimes& times_;
  const TimePoint now_;
  const TimePoint from_;
  const TimePoint until_;
  const TimePoint since_;
  const TimePoint moved_at_;
  TimePoint next_;
};

StallWatch::StallWatch(HostMemory& host, const SetTable& sets, const StallTimes& times,
                       MemberInspector::ReadState read_state)
    : host_(host), sets_(sets), times_(times), inspector_(sets, std::move(read_state)) {}

bool StallWatch::arm(Board& board, TimePoint now) {
  auto& due = board.region().body().stalls.due;
  if (!on() || due.load(std::memory_order_seq_cst) != 0) return false;
  std::uint64_t none = 0;
  const auto first = std::min(times_.warning, times_.shutdown.value_or(times_.warning));
  return due.compare_exchange_strong(none, in_ns(now + first), std::memory_order_seq_cst);
}

Duration StallWatch::until_due(TimePoint now) const {
  if (!on() || poison_of(*host_.board()).cause != LossCause::none) return Duration::max();
  auto left = Duration::max();
  sets_.for_all_from_outside([&](const ProcessSet& set) {
    if (!checks(set)) return;
    const auto due = set.board->region().body().stalls.due.load(std::memory_order_seq_cst);
    if (due != 0) left = std::min(left, std::max(at_ns(due) - now, Duration::zero()));
  });
  return left;
}

StallFindings StallWatch::look(TimePoint now) {
  StallFindings findings;
  if (!on() || poison_of(*host_.board()).cause != LossCause::none) return findings;
  sets_.for_all_from_outside([&](const ProcessSet& set) {
    if (checks(set)) check(set, now, findings);
  });
  return findings;
}

bool StallWatch::claim_check(StallSchedule& schedule, TimePoint now) const {
  auto due = schedule.due.load(std::memory_order_seq_cst);
  if (due == 0 || now < at_ns(due)) return false;
  const auto late = now - at_ns(due);
  if (!schedule.due.compare_exchange_strong(due, in_ns(now + times_.warning),
                                            std::memory_order_seq_cst))
    return false;  // Another rank checks.
  if (late > std::max(kStandstill, times_.warning / 4))
    schedule.since.store(in_ns(now), std::memory_order_relaxed);
  return true;
}

void StallWatch::check(const ProcessSet& set, TimePoint now, StallFindings& findings) {
  auto& board = *set.board;
  auto& schedule = board.region().body().stalls;
  if (!claim_check(schedule, now)) return;
  const auto way = board.stalls().under_way();
  if (way.progress != schedule.progress.load(std::memory_order_relaxed)) {
    schedule.progress.store(way.progress, std::memory_order_relaxed);
    schedule.moved_at.store(in_ns(now), std::memory_order_relaxed);
  }
  // A member that nobody drives may have left entries alone that no peer needed it to run. It has
  // run them at the next check, unless it is stuck.
  if (way.entries != 0) board.bells().wake_laggards(SetBells::For::room);
  const auto pending = board.stalls().unfinished();
  const bool stuck = way.entries != 0 && ((set.member() && set.engine->active()) ||
                                          board.ready().has_ready() || any_member_waits(board));
  if (pending.empty() && !stuck) {
    // A rank that marks a tensor now finds that nothing is due, or this finds its mark.
    schedule.due.exchange(0, std::memory_order_seq_cst);
    if (!board.stalls().unfinished().empty()) arm(board, now);
    return;
  }
  Check check(schedule, times_, now);
  Found found;
  if (way.entries != 0) check.come_back_after(times_.warning / 4);
  find_pending(board, pending, check, found);
  if (stuck) find_stuck(board, way, check, found);
  schedule.due.store(in_ns(check.next()), std::memory_order_seq_cst);
  report(set, std::move(found), now, findings);
}

void StallWatch::find_pending(Board& board, const std::vector<Unfinished>& pending, Check& check,
                              Found& found) const {
  for (const auto& one : pending) {
    // To put a complete tensor into an entry takes microseconds, unless that rank cannot run.
    if (one.wait == Unfinished::Wait::cutter && !inspector_.cannot_run(board, one.missing.front()))
      continue;
    // A rank that has joined waits as long as the others have work.
    const auto began =
        one.is_join ? std::max(at_ns(one.since), check.moved_at()) : at_ns(one.since);
    check.sort_in(began, found, [&] {
      Stalled s{.name = std::string(board.region().tensor_name(one.id)),
                .age = check.age(began),
                .missing = positions(one.missing),
                .undeclared = {},
                .group = std::string(board.directory().groups().name(one.group))};
      for (const int m : one.missing) {
        if (s.group.empty() && one.wait != Unfinished::Wait::cutter &&
            !board.directory().signatures().has_declared(one.id, m))
          s.undeclared.push_back(static_cast<std::size_t>(m));
      }
      return s;
    });
  }
}

void StallWatch::find_stuck(Board& board, const UnderWay& way, Check& check, Found& found) const {
  std::vector<int> stopped;
  std::copy_if(way.behind.begin(), way.behind.end(), std::back_inserter(stopped),
               [&](int m) { return inspector_.cannot_run(board, m); });
  const auto& missing = stopped.empty() ? way.last : stopped;
  for (const auto& name : way.names) {
    check.sort_in(check.moved_at(), found, [&] {
      return Stalled{.name = name,
                     .age = check.age(check.moved_at()),
                     .missing = positions(missing),
                     .undeclared = {},
                     .group = {},
                     .under_way = true};
    });
  }
}

void StallWatch::report(const ProcessSet& set, Found&& found, TimePoint now,
                        StallFindings& findings) const {
  if (found.overdue.empty() && found.too_long.empty()) return;
  if (set.board->leader_port() != nullptr) {
    const auto ask = [&](std::vector<Stalled>&& tensors, Duration limit, bool ends) {
      for (auto& question : stall_questions(set.between_hosts, std::move(tensors), limit, ends))
        findings.questions.push_back(std::move(question));
    };
    ask(std::move(found.overdue), times_.warning, false);
    ask(std::move(found.too_long), times_.shutdown.value_or(times_.warning), true);
    return;
  }
  auto facts = inspector_.facts_of(set, now);
  if (!found.too_long.empty()) {
    const auto& missing = found.too_long.front().missing;
    if (!missing.empty()) findings.culprit = facts.members[missing.front()].rank;
    facts.tensors = std::move(found.too_long);
    findings.end = stall_end_text(facts, times_);
    return;
  }
  facts.tensors = std::move(found.overdue);
  for (auto& line : stall_lines(facts)) findings.lines.push_back(std::move(line));
}

void StallWatch::end_job(const StallFindings& findings) {
  if (!host_.say_stall(findings.end)) return;
  poison_board(host_.board(), {.rank = findings.culprit, .cause = LossCause::stalled}, "");
}

std::string stall_end_text(const StallFacts& facts, const StallTimes& times) {
  return fmt::format(
      "stalled for longer than the {} s of stall.shutdown.time: {}",
      std::chrono::duration<double>(times.shutdown.value_or(Duration::zero())).count(),
      fmt::join(stall_lines(facts), "; "));
}

}  // namespace horo::runtime
