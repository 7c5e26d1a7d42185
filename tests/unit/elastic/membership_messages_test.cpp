// SPDX-License-Identifier: Apache-2.0
#include "base/elastic/membership_messages.hpp"

#include <catch2/catch.hpp>

using horo::Errc;
using namespace horo::elastic;

namespace {

const MembershipAnswer kMember{.generation = 3,
                               .rank = 2,
                               .size = 4,
                               .local_rank = 0,
                               .local_size = 2,
                               .cross_rank = 1,
                               .cross_size = 2,
                               .host_index = 1,
                               .survivors = 3,
                               .notice = 7};

/// A member's answer after one change to it must be refused.
template <typename Change>
void check_refused(Change change) {
  auto answer = kMember;
  change(answer);
  const auto read = decode_answer(encode(answer));
  REQUIRE_FALSE(read);
  CHECK(read.error().code == Errc::protocol);
}

}  // namespace

TEST_CASE("a call comes back as it was, and its bytes are those of the document") {
  const MembershipCall call{.worker = 3, .attempt = 2, .generation = 5};
  const auto bytes = encode(call);
  CHECK(bytes == std::string("\3\0\0\0\2\0\0\0\5\0\0\0\0\0\0\0", 16));
  CHECK(*decode_call(bytes) == call);
}

TEST_CASE("an answer comes back as it was") {
  CHECK(*decode_answer(encode(kMember)) == kMember);
  const MembershipAnswer removed{.kind = MembershipKind::removed, .reason = "host a is to go"};
  CHECK(*decode_answer(encode(removed)) == removed);
  CHECK(encode(kMember).size() == 1 + 8 + 7 * 4 + 4 + 8 + 4);
}

TEST_CASE("a call or an answer that is cut or longer is refused") {
  const auto call = encode(MembershipCall{});
  for (std::size_t n = 0; n < call.size(); ++n) CHECK_FALSE(decode_call(call.substr(0, n)));
  CHECK_FALSE(decode_call(call + "x"));
  const auto answer = encode(kMember);
  for (std::size_t n = 0; n < answer.size(); ++n) CHECK_FALSE(decode_answer(answer.substr(0, n)));
  CHECK_FALSE(decode_answer(answer + "x"));
}

TEST_CASE("a call with impossible numbers is refused") {
  CHECK_FALSE(decode_call(encode(MembershipCall{.attempt = 0})));
  CHECK_FALSE(decode_call(encode(MembershipCall{.worker = kMostWorker + 1})));
  CHECK_FALSE(decode_call(encode(MembershipCall{.generation = kMostGeneration + 1})));
}

TEST_CASE("a member's numbers must fit together") {
  check_refused([](auto& a) { a.generation = 0; });
  check_refused([](auto& a) { a.generation = kMostGeneration + 1; });
  check_refused([](auto& a) { a.rank = 4; });
  check_refused([](auto& a) { a.rank = -1; });
  check_refused([](auto& a) { a.size = 0; });
  check_refused([](auto& a) { a.local_rank = 2; });
  check_refused([](auto& a) { a.local_size = 5; });
  check_refused([](auto& a) { a.cross_rank = 2; });
  check_refused([](auto& a) { a.cross_size = 5; });
  check_refused([](auto& a) { a.host_index = -1; });
  check_refused([](auto& a) { a.host_index = 4; });
  check_refused([](auto& a) { a.survivors = 5; });
}

TEST_CASE("an answer of an unknown kind or with a reason that is no text is refused") {
  auto bytes = encode(kMember);
  bytes[0] = 4;
  CHECK_FALSE(decode_answer(bytes));
  auto refused = MembershipAnswer{.kind = MembershipKind::refused, .reason = {"a\0b", 3}};
  CHECK_FALSE(decode_answer(encode(refused)));
  refused.reason = std::string(4097, 'x');
  CHECK_FALSE(decode_answer(encode(refused)));
}

TEST_CASE("every worker, attempt and generation has a key of its own") {
  CHECK(call_key(12) == "horo/elastic/call/12");
  CHECK(answer_key(12, 3) == "horo/elastic/answer/12/3");
  CHECK(over_key(9) == "horo/elastic/over/9");
}

TEST_CASE("a word that training goes on comes back as it was, and an impossible one is refused") {
  const TrainingResumed word{
      .worker = 3, .generation = 5, .stood_still_us = 57'000, .repeated = -1};
  CHECK(*decode_resumed(encode(word)) == word);
  CHECK(encode(word).size() == 4 + 3 * 8);
  CHECK_FALSE(decode_resumed(encode(word) + "x"));
  CHECK_FALSE(decode_resumed(encode(word).substr(1)));
  CHECK_FALSE(decode_resumed(encode(TrainingResumed{.worker = kMostWorker + 1, .generation = 1})));
  CHECK_FALSE(decode_resumed(encode(TrainingResumed{.generation = 0})));
  CHECK_FALSE(decode_resumed(
      encode(TrainingResumed{.generation = 1, .stood_still_us = kMostStoodStillUs + 1})));
  CHECK_FALSE(decode_resumed(encode(TrainingResumed{.generation = 1, .repeated = -2})));
}
