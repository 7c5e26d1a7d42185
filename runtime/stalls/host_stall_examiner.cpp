// SPDX-License-Identifier: Apache-2.0
#include "runtime/stalls/host_stall_examiner.hpp"

#include <algorithm>
#include <chrono>

#include "runtime/stalls/stall_questions.hpp"

namespace horo::runtime {

namespace {

using tree::StallAnswer;
using tree::StallQuestion;
using tree::TensorStall;

constexpr std::size_t kMostPending = 64;

std::uint32_t ms_since(std::uint64_t ns, TimePoint now) {
  const auto passed = now - TimePoint(Duration(static_cast<Duration::rep>(ns)));
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(passed).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(ms, 0, 0xffffffff));
}

/// The ranks of this host that a tensor lacks which none of them has submitted.
void add_all(const Board& board, std::optional<TensorId> id, TensorStall& lacking) {
  for (int m = 0; m < board.region().local_size(); ++m) {
    if (board.marks().has_joined(m)) continue;
    lacking.missing.add(board.region().global_rank(m));
    if (!id || !board.directory().signatures().has_declared(*id, m))
      lacking.undeclared.add(board.region().global_rank(m));
  }
}

std::vector<TensorStall> lacking_of(Board& board, const StallQuestion& question, TimePoint now) {
  const auto pending = board.stalls().unfinished();
  std::vector<TensorStall> all;
  for (const auto& name : question.names) {
    auto& lacking = all.emplace_back();
    const auto found = std::find_if(pending.begin(), pending.end(), [&](const Unfinished& one) {
      return board.region().tensor_name(one.id) == name;
    });
    if (found == pending.end()) {
      add_all(board, board.directory().find_unlocked(name), lacking);
      continue;
    }
    lacking.waited_ms = std::max(ms_since(found->since, now), 1U);
    lacking.group = board.directory().groups().name(found->group);
    for (const int m : found->missing) {
      lacking.missing.add(board.region().global_rank(m));
      if (lacking.group.empty() && !board.directory().signatures().has_declared(found->id, m))
        lacking.undeclared.add(board.region().global_rank(m));
    }
  }
  return all;
}

}  // namespace

StallAnswer HostStallExaminer::examine_in(const ProcessSet& set, const StallQuestion& question,
                                          TimePoint now) const {
  auto& board = *set.board;
  StallAnswer answer;
  answer.lacking = question.under_way
                       ? std::vector<TensorStall>(question.names.size(), held_up(board, now))
                       : lacking_of(board, question, now);
  const auto facts = watch_.inspector().facts_of(set, now);
  for (int m = 0; m < board.region().local_size() && answer.verdicts.size() < tree::kMostVerdicts;
       ++m) {
    const auto rank = board.region().global_rank(m);
    const bool missing =
        std::any_of(answer.lacking.begin(), answer.lacking.end(),
                    [rank](const TensorStall& l) { return l.missing.contains(rank); });
    if (!missing) continue;
    answer.verdicts.push_back(
        {.rank = rank,
         .host = host_name_,
         .text = verdict(facts.members[static_cast<std::size_t>(m)], set.id)});
  }
  return answer;
}

TensorStall HostStallExaminer::held_up(Board& board, TimePoint now) const {
  TensorStall lacking;
  const auto way = board.stalls().under_way();
  if (way.entries == 0) return lacking;
  const auto& schedule = board.region().body().stalls;
  if (way.progress == schedule.progress.load(std::memory_order_relaxed))
    lacking.waited_ms = ms_since(schedule.moved_at.load(std::memory_order_relaxed), now);
  for (const int m : way.behind) {
    if (watch_.inspector().cannot_run(board, m)) lacking.missing.add(board.region().global_rank(m));
  }
  return lacking;
}

std::optional<StallAnswer> HostStallExaminer::examine(const StallQuestion& question) {
  const auto now = SteadyClock::instance().now();
  std::optional<StallAnswer> answer;
  sets_.for_all_from_outside([&](const ProcessSet& set) {
    if (set.between_hosts == question.set && set.board != nullptr &&
        set.board->leader_port() != nullptr)
      answer = examine_in(set, question, now);
  });
  return answer;
}

std::optional<tree::Loss> HostStallExaminer::conclude(const StallQuestion& question,
                                                      const StallAnswer& answer) {
  SetId shown = question.set;
  sets_.for_all_from_outside([&](const ProcessSet& set) {
    if (set.between_hosts == question.set) shown = set.id;
  });
  const auto facts = facts_of(shown, question, answer);
  if (facts.tensors.empty()) return std::nullopt;
  if (!question.ends) {
    for (auto& line : stall_lines(facts)) write_later(log::Level::warning, std::move(line));
    return std::nullopt;
  }
  tree::Loss loss{
      .cause = LossCause::stalled, .host = {}, .text = stall_end_text(facts, watch_.times())};
  const auto& missing = facts.tensors.front().missing;
  if (!missing.empty()) {
    loss.rank = facts.members[missing.front()].rank;
    loss.host = facts.members[missing.front()].host;
  }
  write_later(log::Level::error, loss.text);
  return loss;
}

void HostStallExaminer::write_later(log::Level level, std::string line) {
  const MutexLock lock(mutex_);
  if (pending_.size() >= kMostPending) return;
  pending_.emplace_back(level, std::move(line));
  has_pending_.store(true, std::memory_order_seq_cst);
  host_.waker().ring_own();
}

void HostStallExaminer::write_pending() {
  if (!has_pending_.load(std::memory_order_relaxed)) return;
  std::vector<std::pair<log::Level, std::string>> lines;
  {
    const MutexLock lock(mutex_);
    lines.swap(pending_);
    has_pending_.store(false, std::memory_order_seq_cst);
  }
  for (const auto& [level, line] : lines) log::write(level, "stall", line);
}

}  // namespace horo::runtime
