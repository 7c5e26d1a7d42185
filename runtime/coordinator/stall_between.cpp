// SPDX-License-Identifier: Apache-2.0
// Stalls of sets with members on other hosts: what is asked, what this host answers, and what the
// root makes of all answers.
#include <algorithm>
#include <chrono>

#include "runtime/coordinator/stall_watch.hpp"

namespace horo::runtime {

namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using tree::Answer;
using tree::Lacking;
using tree::Question;

constexpr std::size_t kMostUnsaid = 64;

std::uint32_t in_ms(Duration d) {
  const auto ms = duration_cast<milliseconds>(d).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(ms, 0, 0xffffffff));
}

Duration since(std::uint64_t ns, TimePoint now) {
  return now - TimePoint(Duration(static_cast<Duration::rep>(ns)));
}

/// Who of this host lacks a tensor that nobody on it has submitted.
void add_all(const Board& board, std::optional<TensorId> id, Lacking& lacking) {
  for (int m = 0; m < board.local_size(); ++m) {
    if (board.has_joined(m)) continue;
    lacking.missing.add(board.global_rank(m));
    if (!id || !board.has_declared(*id, m)) lacking.undeclared.add(board.global_rank(m));
  }
}

std::vector<Lacking> lacking_of(Board& board, const Question& question, TimePoint now) {
  const auto pending = board.unfinished();
  std::vector<Lacking> all;
  for (const auto& name : question.names) {
    auto& lacking = all.emplace_back();
    const auto found = std::find_if(pending.begin(), pending.end(), [&](const Unfinished& one) {
      return board.tensor_name(one.id) == name;
    });
    if (found == pending.end()) {
      add_all(board, board.find(name), lacking);
      continue;
    }
    lacking.waited_ms = std::max(in_ms(since(found->since, now)), 1U);
    lacking.group = board.group_name(found->group);
    for (const int m : found->missing) {
      lacking.missing.add(board.global_rank(m));
      if (lacking.group.empty() && !board.has_declared(found->id, m))
        lacking.undeclared.add(board.global_rank(m));
    }
  }
  return all;
}

}  // namespace

void StallWatch::ask(SetId set, std::vector<Stalled>&& tensors, bool ends,
                     StallFindings& findings) const {
  const auto limit = ends ? times_.shutdown.value_or(times_.warning) : times_.warning;
  for (const bool under_way : {false, true}) {
    // Whoever submitted later has waited a little less.
    Question question{.set = set,
                      .least_ms = in_ms(limit / 4 * 3),
                      .under_way = under_way,
                      .ends = ends,
                      .names = {}};
    for (auto& tensor : tensors) {
      if (tensor.under_way != under_way) continue;
      if (question.names.size() < tree::kMostAsked) {
        question.names.push_back(std::move(tensor.name));
      } else {
        ++question.more;
      }
    }
    if (!question.names.empty()) findings.questions.push_back(std::move(question));
  }
}

Answer StallWatch::examine_in(const ProcessSet& set, const Question& question,
                              TimePoint now) const {
  auto& board = *set.board;
  Answer answer;
  answer.lacking = question.under_way
                       ? std::vector<Lacking>(question.names.size(), held_up(board, now))
                       : lacking_of(board, question, now);
  const auto facts = gather(set, now);
  for (int m = 0; m < board.local_size() && answer.verdicts.size() < tree::kMostVerdicts; ++m) {
    const auto rank = board.global_rank(m);
    const bool missing = std::any_of(answer.lacking.begin(), answer.lacking.end(),
                                     [rank](const Lacking& l) { return l.missing.contains(rank); });
    if (!missing) continue;
    answer.verdicts.push_back(
        {.rank = rank,
         .host = host_name_,
         .text = verdict(facts.members[static_cast<std::size_t>(m)], set.id)});
  }
  return answer;
}

Lacking StallWatch::held_up(Board& board, TimePoint now) const {
  Lacking lacking;
  const auto way = board.under_way();
  if (way.entries == 0) return lacking;
  const auto& schedule = board.body().stalls;
  if (way.progress == schedule.progress.load(std::memory_order_relaxed))
    lacking.waited_ms = in_ms(since(schedule.moved_at.load(std::memory_order_relaxed), now));
  for (const int m : way.behind) {
    if (helpless(board, m)) lacking.missing.add(board.global_rank(m));
  }
  return lacking;
}

std::optional<Answer> StallWatch::examine(const Question& question) {
  const auto now = SteadyClock::instance().now();
  std::optional<Answer> answer;
  sets_.for_all_from_outside([&](const ProcessSet& set) {
    if (set.between_hosts == question.set && set.board != nullptr && set.board->spans())
      answer = examine_in(set, question, now);
  });
  return answer;
}

StallFacts facts_of(SetId set, const Question& question, const Answer& answer) {
  StallFacts facts{.set = set, .members = {}, .tensors = {}, .more = question.more};
  for (const auto& verdict : answer.verdicts) {
    facts.members.push_back(
        {.rank = verdict.rank, .host = verdict.host, .verdict = verdict.text, .waits_for = {}});
  }
  for (std::size_t i = 0; i < question.names.size() && i < answer.lacking.size(); ++i) {
    const auto& lacking = answer.lacking[i];
    // It has gone on meanwhile, or moves, however slowly: nobody keeps it.
    if (lacking.waited_ms < question.least_ms) continue;
    if (lacking.missing.empty() && lacking.group.empty()) continue;
    Stalled stalled{.name = question.names[i],
                    .age = milliseconds(lacking.waited_ms),
                    .missing = {},
                    .undeclared = {},
                    .group = lacking.group,
                    .under_way = question.under_way};
    for (std::size_t m = 0; m < facts.members.size(); ++m) {
      const auto rank = facts.members[m].rank;
      if (lacking.missing.contains(rank)) stalled.missing.push_back(m);
      if (lacking.undeclared.contains(rank)) stalled.undeclared.push_back(m);
    }
    stalled.more = static_cast<std::size_t>(lacking.missing.size()) - stalled.missing.size();
    facts.tensors.push_back(std::move(stalled));
  }
  return facts;
}

std::optional<tree::Loss> StallWatch::conclude(const Question& question, const Answer& answer) {
  SetId shown = question.set;
  sets_.for_all_from_outside([&](const ProcessSet& set) {
    if (set.between_hosts == question.set) shown = set.id;
  });
  const auto facts = facts_of(shown, question, answer);
  if (facts.tensors.empty()) return std::nullopt;
  if (!question.ends) {
    for (auto& line : stall_lines(facts)) say_later(log::Level::warning, std::move(line));
    return std::nullopt;
  }
  tree::Loss loss{.cause = LossCause::stalled, .host = {}, .text = end_text(facts)};
  const auto& missing = facts.tensors.front().missing;
  if (!missing.empty()) {
    loss.rank = facts.members[missing.front()].rank;
    loss.host = facts.members[missing.front()].host;
  }
  say_later(log::Level::error, loss.text);
  return loss;
}

void StallWatch::say_later(log::Level level, std::string line) {
  const std::lock_guard lock(unsaid_mutex_);
  if (unsaid_.size() >= kMostUnsaid) return;
  unsaid_.emplace_back(level, std::move(line));
  has_unsaid_.store(true, std::memory_order_seq_cst);
  ring(host_.my_slot());
}

void StallWatch::say() {
  if (!has_unsaid_.load(std::memory_order_relaxed)) return;
  std::vector<std::pair<log::Level, std::string>> lines;
  {
    const std::lock_guard lock(unsaid_mutex_);
    lines.swap(unsaid_);
    has_unsaid_.store(false, std::memory_order_seq_cst);
  }
  for (const auto& [level, line] : lines) log::write(level, "stall", line);
}

}  // namespace horo::runtime
