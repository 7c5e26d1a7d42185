// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/call_answers.hpp"

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using elastic::MembershipKind;

namespace {

GenerationMember member(int worker, std::size_t host, int rank, int local_rank, int local_size) {
  GenerationMember made{.worker = worker, .attempt = 2, .host = host};
  made.place = {.rank = Rank{rank},
                .host = host,
                .local_rank = LocalRank{local_rank},
                .local_size = local_size};
  return made;
}

}  // namespace

TEST_CASE("the members of each host get their answers together, with their places") {
  const auto answers =
      answers_of({.generation = 4,
                  .members = {member(3, 0, 0, 0, 2), member(7, 0, 1, 1, 2), member(9, 2, 2, 0, 1)},
                  .survivors = 2,
                  .notice = 9});
  REQUIRE(answers.size() == 2);
  REQUIRE(answers.at(0).size() == 2);
  REQUIRE(answers.at(2).size() == 1);
  const auto& second = answers.at(0)[1];
  CHECK((second.worker == 7 && second.attempt == 2));
  CHECK(second.answer.kind == MembershipKind::member);
  CHECK(second.answer.generation == 4);
  CHECK((second.answer.rank == 1 && second.answer.size == 3));
  CHECK((second.answer.local_rank == 1 && second.answer.local_size == 2));
  CHECK((second.answer.survivors == 2 && second.answer.notice == 9));
  CHECK(answers.at(2)[0].worker == 9);
}

TEST_CASE("a worker that gets no place is told why") {
  const auto answer =
      answer_of({.worker = 1, .attempt = 3, .reason = "host b leaves"}, MembershipKind::removed);
  CHECK((answer.worker == 1 && answer.attempt == 3));
  CHECK(answer.answer.kind == MembershipKind::removed);
  CHECK(answer.answer.reason == "host b leaves");
}

TEST_CASE("a reason is not longer than agents accept") {
  const auto answer = answer_of({.worker = 1, .attempt = 3, .reason = std::string(5000, 'x')},
                                MembershipKind::refused);
  CHECK(answer.answer.reason == std::string(4096, 'x'));
}
