// SPDX-License-Identifier: Apache-2.0
// What keeps a tensor: a question goes to the root, from there to every host with members, and the
// answers come back, merged.
#include <chrono>

#include "runtime/coordinator/tree/leader.hpp"

namespace horo::runtime::tree {

void Leader::ask(Question&& question, TimePoint now) {
  now_ = now;
  if (loss_ || left_) return;
  raise(std::move(question));
  conclude();
}

void Leader::raise(Question&& question) {
  if (!is_root()) return send(kParent, question);
  if (!inquiries_.admit(question, now_)) return;
  question.number = inquiries_.next_number();
  question.patience_ms = kRootPatienceMs;
  spread(std::move(question));
}

void Leader::spread(Question&& question) {
  const auto found = sets_.find(question.set);
  if (found == sets_.end()) return;  // Removed: nobody waits in it any more.
  Inquiries::Inquiry inquiry{.question = question,
                             .answer = examine(found->second, question),
                             .until = now_ + std::chrono::milliseconds(question.patience_ms)};
  // Whoever is below has to answer earlier than this host.
  question.patience_ms /= 2;
  for (std::size_t i = 1; i < links_.size(); ++i) {
    if (!concerns(found->second, i) || links_[i].state != LinkState::open) continue;
    inquiry.silent |= std::uint64_t{1} << i;
    send(i, question);
  }
  inquiries_.open(std::move(inquiry));
}

Answer Leader::examine(const Set& set, const Question& question) {
  const auto& members = set.relay->members(Relay::kOwn);
  if (!members.empty()) {
    if (auto answer = state_.examine(question)) return std::move(*answer);
  }
  // Without members nothing lacks; with members that are still on their way everything does.
  Answer answer{.lacking = std::vector<Lacking>(question.names.size()), .verdicts = {}};
  if (members.empty()) return answer;
  for (auto& lacking : answer.lacking) lacking.missing = members;
  answer.verdicts.push_back({.rank = Rank{members.ranges().front().first},
                             .host = hosts_[static_cast<std::size_t>(place_.host)].name,
                             .text = "still connects this process set"});
  return answer;
}

void Leader::blame_silence(Inquiries::Inquiry& inquiry) {
  const auto set = sets_.find(inquiry.question.set);
  for (std::size_t i = 1; i < links_.size() && set != sets_.end(); ++i) {
    if ((inquiry.silent >> i & 1U) == 0) continue;
    const Rank rank{set->second.relay->members(i).ranges().front().first};
    Answer guess{.lacking = std::vector<Lacking>(inquiry.question.names.size())};
    for (auto& lacking : guess.lacking) lacking.missing.add(rank);
    guess.verdicts.push_back({.rank = rank, .host = {}, .text = "its host does not answer"});
    merge(inquiry.answer, std::move(guess));
  }
}

void Leader::leave_out_agreed(Inquiries::Inquiry& inquiry) {
  const auto set = sets_.find(inquiry.question.set);
  if (inquiry.question.under_way || set == sets_.end()) return;
  for (std::size_t i = 0; i < inquiry.answer.lacking.size(); ++i) {
    // In an entry since somebody began to wait: hosts run it, or are about to.
    auto& lacking = inquiry.answer.lacking[i];
    const auto began = now_ - std::chrono::milliseconds(lacking.waited_ms);
    if (set->second.agreement->last_cut(inquiry.question.names[i]) >= began) lacking = {};
  }
}

void Leader::conclude() {
  std::vector<Inquiries::Inquiry> finished;
  inquiries_.take_finished(now_, finished);
  for (auto& inquiry : finished) {
    blame_silence(inquiry);
    inquiry.answer.set = inquiry.question.set;
    inquiry.answer.number = inquiry.question.number;
    if (!is_root()) {
      send(kParent, inquiry.answer);
      continue;
    }
    leave_out_agreed(inquiry);
    if (const auto loss = state_.conclude(inquiry.question, inquiry.answer)) {
      report(*loss);
    }
  }
}

}  // namespace horo::runtime::tree
