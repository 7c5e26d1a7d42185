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
                             .answer = state_.examine(question),
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

void Leader::conclude() {
  std::vector<Inquiries::Inquiry> finished;
  inquiries_.take_finished(now_, finished);
  for (auto& inquiry : finished) {
    blame_silence(inquiry);
    inquiry.answer.set = inquiry.question.set;
    inquiry.answer.number = inquiry.question.number;
    if (!is_root()) {
      send(kParent, inquiry.answer);
    } else if (const auto loss = state_.conclude(inquiry.question, inquiry.answer)) {
      report(*loss);
    }
  }
}

}  // namespace horo::runtime::tree
