// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/leader/stall_inquiries.hpp"

#include <catch2/catch.hpp>

using namespace horo;                  // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime::tree;   // NOLINT(google-build-using-namespace): a test of it
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

namespace {

StallQuestion about(std::vector<std::string> names) {
  return {.set = SetId{1}, .least_ms = 1000, .names = std::move(names)};
}

StallAnswer from(int rank, std::uint32_t number = 1) {
  return {.number = number,
          .lacking = {{.missing = RankRanges::of(rank, 1)}},
          .verdicts = {{.rank = Rank{rank}, .host = "node", .text = "stopped"}}};
}

/// StallQuestion 1, which links 1 and 2 have to answer within two seconds.
StallInquiries::Inquiry asked() {
  auto question = about({"x"});
  question.number = 1;
  return {.question = question,
          .answer = {.lacking = std::vector<TensorStall>(1)},
          .silent = 0b110,
          .until = TimePoint(2s)};
}

}  // namespace

TEST_CASE("a name that was asked about recently is not asked about again") {
  StallInquiries inquiries;
  auto first = about({"x", "y"});
  CHECK(inquiries.admit(first, TimePoint(10s)));
  auto second = about({"y", "z", "x"});
  CHECK(inquiries.admit(second, TimePoint(10s + 999ms)));
  CHECK(second.names == std::vector<std::string>{"z"});
  auto third = about({"x", "y"});
  CHECK_FALSE(inquiries.admit(third, TimePoint(10s + 999ms)));
  auto fourth = about({"x", "y"});
  CHECK(inquiries.admit(fourth, TimePoint(11s)));
  CHECK(fourth.names.size() == 2);
}

TEST_CASE("a question that ends the job and a question about another set are asked") {
  StallInquiries inquiries;
  auto warning = about({"x"});
  CHECK(inquiries.admit(warning, TimePoint(10s)));
  auto end = about({"x"});
  end.ends = true;
  CHECK(inquiries.admit(end, TimePoint(10s)));
  auto other = about({"x"});
  other.set = SetId{2};
  CHECK(inquiries.admit(other, TimePoint(10s)));
}

TEST_CASE("an inquiry is finished when all children have answered") {
  StallInquiries inquiries;
  inquiries.open(asked());
  std::vector<StallInquiries::Inquiry> finished;
  inquiries.take(2, from(7));
  inquiries.take(2, from(9));     // Twice.
  inquiries.take(1, from(8, 3));  // To another question.
  inquiries.take_finished(TimePoint(1s), finished);
  CHECK(finished.empty());
  inquiries.take(1, from(4));
  inquiries.take_finished(TimePoint(1s), finished);
  REQUIRE(finished.size() == 1);
  CHECK(finished[0].answer.lacking[0].missing.text() == "4, 7");
  REQUIRE(finished[0].answer.verdicts.size() == 2);
  CHECK(finished[0].answer.verdicts[0].rank == Rank{4});
  CHECK(inquiries.next_time() == TimePoint::max());
}

TEST_CASE("a child that does not answer in time is not waited for") {
  StallInquiries inquiries;
  inquiries.open(asked());
  inquiries.take(1, from(4));
  CHECK(inquiries.next_time() == TimePoint(2s));
  std::vector<StallInquiries::Inquiry> finished;
  inquiries.take_finished(TimePoint(2s), finished);
  REQUIRE(finished.size() == 1);
  CHECK(finished[0].silent == 0b100);
}

TEST_CASE("a child whose link has ended is neither waited for nor blamed") {
  StallInquiries inquiries;
  inquiries.open(asked());
  inquiries.take(1, from(4));
  inquiries.forget(2);
  std::vector<StallInquiries::Inquiry> finished;
  inquiries.take_finished(TimePoint(1s), finished);
  REQUIRE(finished.size() == 1);
  CHECK(finished[0].silent == 0);
}

TEST_CASE("the verdicts of the lowest ranks are kept, and all missing ranks") {
  StallAnswer all{.lacking = std::vector<TensorStall>(1)};
  for (int rank = 20; rank-- > 0;) merge(all, from(rank));
  CHECK(all.lacking[0].missing == RankRanges::of(0, 20));
  REQUIRE(all.verdicts.size() == kMostVerdicts);
  CHECK(all.verdicts.back().rank == Rank{7});
}

TEST_CASE("an answer about fewer names than asked is merged safely") {
  StallAnswer all{.lacking = std::vector<TensorStall>(3)};
  merge(all, from(1));
  CHECK(all.lacking[0].missing.size() == 1);
  CHECK(all.lacking[1].missing.empty());
}
