// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/leader/stall_inquiries.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace horo::runtime::tree {

namespace {

constexpr std::size_t kMostOpen = 16;  ///< Further questions are dropped.
constexpr std::size_t kMostRemembered = 4096;

}  // namespace

void merge(StallAnswer& into, StallAnswer&& more) {
  for (std::size_t i = 0; i < std::min(into.lacking.size(), more.lacking.size()); ++i) {
    auto& ours = into.lacking[i];
    auto& theirs = more.lacking[i];
    ours.waited_ms = std::max(ours.waited_ms, theirs.waited_ms);
    ours.missing.add(theirs.missing);
    ours.undeclared.add(theirs.undeclared);
    if (ours.group.empty()) ours.group = std::move(theirs.group);
  }
  auto& verdicts = into.verdicts;
  verdicts.insert(verdicts.end(), std::make_move_iterator(more.verdicts.begin()),
                  std::make_move_iterator(more.verdicts.end()));
  std::sort(verdicts.begin(), verdicts.end(),
            [](const RankVerdict& a, const RankVerdict& b) { return a.rank < b.rank; });
  if (verdicts.size() > kMostVerdicts) verdicts.resize(kMostVerdicts);
}

bool StallInquiries::admit(StallQuestion& question, TimePoint now) {
  if (open_.size() >= kMostOpen) return false;
  if (asked_.size() > kMostRemembered) asked_.clear();
  const auto quiet = std::chrono::milliseconds(question.least_ms);
  std::erase_if(question.names, [&](const std::string& name) {
    auto key = fmt::format("{}{}{}/{}", question.set, question.ends ? "!" : "",
                           question.under_way ? "~" : "", name);
    const auto [before, fresh] = asked_.try_emplace(std::move(key), now);
    if (!fresh && now - before->second < quiet) return true;
    before->second = now;
    return false;
  });
  return !question.names.empty();
}

void StallInquiries::take(std::size_t link, StallAnswer&& answer) {
  const auto bit = std::uint64_t{1} << link;
  for (auto& inquiry : open_) {
    if (inquiry.question.number != answer.number || (inquiry.silent & bit) == 0) continue;
    inquiry.silent &= ~bit;
    merge(inquiry.answer, std::move(answer));
    return;
  }
}

void StallInquiries::forget(std::size_t link) {
  for (auto& inquiry : open_) inquiry.silent &= ~(std::uint64_t{1} << link);
}

void StallInquiries::take_finished(TimePoint now, std::vector<Inquiry>& out) {
  const auto done = std::stable_partition(
      open_.begin(), open_.end(),
      [now](const Inquiry& inquiry) { return inquiry.silent != 0 && now < inquiry.until; });
  out.insert(out.end(), std::make_move_iterator(done), std::make_move_iterator(open_.end()));
  open_.erase(done, open_.end());
}

TimePoint StallInquiries::next_time() const {
  auto next = TimePoint::max();
  for (const auto& inquiry : open_) next = std::min(next, inquiry.until);
  return next;
}

}  // namespace horo::runtime::tree
