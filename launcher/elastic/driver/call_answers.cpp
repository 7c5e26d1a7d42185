// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/call_answers.hpp"

#include "base/elastic/membership_forms.hpp"

namespace horo::launcher {

using elastic::CallAnswer;
using elastic::MembershipAnswer;
using elastic::MembershipKind;

namespace {

MembershipAnswer place_of(const FormedGeneration& generation, const GenerationMember& member) {
  const auto& place = member.place;
  return {.kind = MembershipKind::member,
          .generation = generation.generation,
          .rank = place.rank.value(),
          .size = static_cast<std::int32_t>(generation.members.size()),
          .local_rank = place.local_rank.value(),
          .local_size = place.local_size,
          .cross_rank = place.cross_rank,
          .cross_size = place.cross_size,
          .host_index = static_cast<std::int32_t>(place.host),
          .survivors = generation.survivors,
          .notice = generation.notice,
          .reason = {}};
}

}  // namespace

std::map<std::size_t, std::vector<CallAnswer>> answers_of(const FormedGeneration& generation) {
  std::map<std::size_t, std::vector<CallAnswer>> answers;
  for (const auto& member : generation.members) {
    answers[member.host].push_back({.worker = static_cast<std::uint32_t>(member.worker),
                                    .attempt = member.attempt,
                                    .answer = place_of(generation, member)});
  }
  return answers;
}

CallAnswer answer_of(const TurnedAway& worker, MembershipKind kind) {
  MembershipAnswer answer;
  answer.kind = kind;
  // An agent refuses a longer one, and all of its message.
  answer.reason = worker.reason.substr(0, elastic::kReasonForm.most);
  return {.worker = static_cast<std::uint32_t>(worker.worker),
          .attempt = worker.attempt,
          .answer = std::move(answer)};
}

}  // namespace horo::launcher
