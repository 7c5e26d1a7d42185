// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/leader/stall_router.hpp"

#include <chrono>

namespace horo::runtime::tree {

void StallRouter::ask(StallQuestion&& question, TimePoint now) {
  if (!context_.is_root()) return links_.send(LeaderLinks::kParent, question, now);
  if (!inquiries_.admit(question, now)) return;
  question.number = inquiries_.next_number();
  question.timeout_ms = kRootTimeoutMs;
  spread(std::move(question), now);
}

void StallRouter::spread(StallQuestion&& question, TimePoint now) {
  const auto* const own = sets_.members(question.set, SubtreeAggregator::kOwn);
  if (own == nullptr) return;  // The set was removed: no rank waits in it any more.
  StallInquiries::Inquiry inquiry{.question = question,
                                  .answer = examine(*own, question),
                                  .until = now + std::chrono::milliseconds(question.timeout_ms)};
  question.timeout_ms /= 2;  // A child has to answer before this host does.
  for (std::size_t i = 1; i < links_.count(); ++i) {
    if (sets_.members(question.set, i)->empty() || !links_.is_open(i)) continue;
    inquiry.silent |= std::uint64_t{1} << i;
    links_.send(i, question, now);
  }
  inquiries_.open(std::move(inquiry));
}

StallAnswer StallRouter::examine(const RankRanges& members, const StallQuestion& question) const {
  StallAnswer answer{.lacking = std::vector<TensorStall>(question.names.size()), .verdicts = {}};
  if (members.empty()) return answer;
  auto* const examiner = state_.examiner();
  if (examiner == nullptr) return answer;
  if (auto examined = examiner->examine(question)) return std::move(*examined);
  // The members are still connecting the set: they have submitted nothing.
  for (auto& lacking : answer.lacking) lacking.missing = members;
  answer.verdicts.push_back({.rank = Rank{members.ranges().front().first},
                             .host = context_.own_host().name,
                             .text = "still connects this process set"});
  return answer;
}

void StallRouter::add_silent_children(StallInquiries::Inquiry& inquiry) const {
  for (std::size_t i = 1; i < links_.count(); ++i) {
    if ((inquiry.silent >> i & 1U) == 0) continue;
    const auto* const members = sets_.members(inquiry.question.set, i);
    if (members == nullptr) return;
    const Rank rank{members->ranges().front().first};
    StallAnswer guess{.lacking = std::vector<TensorStall>(inquiry.question.names.size())};
    for (auto& lacking : guess.lacking) lacking.missing.add(rank);
    guess.verdicts.push_back({.rank = rank, .host = {}, .text = "its host does not answer"});
    merge(inquiry.answer, std::move(guess));
  }
}

void StallRouter::leave_out_agreed(StallInquiries::Inquiry& inquiry, TimePoint now) const {
  if (inquiry.question.under_way) return;
  for (std::size_t i = 0; i < inquiry.answer.lacking.size(); ++i) {
    // It was in an entry after a rank began to wait: hosts run it, or are about to.
    auto& lacking = inquiry.answer.lacking[i];
    const auto began = now - std::chrono::milliseconds(lacking.waited_ms);
    if (sets_.last_cut(inquiry.question.set, inquiry.question.names[i]) >= began) lacking = {};
  }
}

std::optional<Loss> StallRouter::conclude(TimePoint now) {
  std::vector<StallInquiries::Inquiry> finished;
  inquiries_.take_finished(now, finished);
  std::optional<Loss> first;
  for (auto& inquiry : finished) {
    add_silent_children(inquiry);
    inquiry.answer.set = inquiry.question.set;
    inquiry.answer.number = inquiry.question.number;
    if (!context_.is_root()) {
      links_.send(LeaderLinks::kParent, inquiry.answer, now);
      continue;
    }
    leave_out_agreed(inquiry, now);
    auto* const examiner = state_.examiner();
    if (examiner == nullptr) continue;
    auto loss = examiner->conclude(inquiry.question, inquiry.answer);
    if (!first) first = std::move(loss);
  }
  return first;
}

}  // namespace horo::runtime::tree
