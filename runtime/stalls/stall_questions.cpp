// SPDX-License-Identifier: Apache-2.0
#include "runtime/stalls/stall_questions.hpp"

#include <algorithm>
#include <chrono>

namespace horo::runtime {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using tree::StallAnswer;
using tree::StallQuestion;

std::vector<StallQuestion> stall_questions(SetId set, std::vector<Stalled>&& tensors,
                                           Duration limit, bool ends) {
  std::vector<StallQuestion> questions;
  // A rank that submitted later has waited a little less.
  const auto least = std::max<std::int64_t>(duration_cast<milliseconds>(limit / 4 * 3).count(), 0);
  for (const bool under_way : {false, true}) {
    StallQuestion question{
        .set = set,
        .least_ms = static_cast<std::uint32_t>(std::min<std::int64_t>(least, ~0U)),
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
    if (!question.names.empty()) questions.push_back(std::move(question));
  }
  return questions;
}

StallFacts facts_of(SetId set, const StallQuestion& question, const StallAnswer& answer) {
  StallFacts facts{.set = set, .members = {}, .tensors = {}, .more = question.more};
  for (const auto& verdict : answer.verdicts) {
    facts.members.push_back(
        {.rank = verdict.rank, .host = verdict.host, .verdict = verdict.text, .waits_for = {}});
  }
  for (std::size_t i = 0; i < question.names.size() && i < answer.lacking.size(); ++i) {
    const auto& lacking = answer.lacking[i];
    // The tensor has completed meanwhile, or its entry moves, however slowly.
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

}  // namespace horo::runtime
