// SPDX-License-Identifier: Apache-2.0
// A leader with two children and no members of its own: sources 1 and 2, ranks 0-1 and 2-3.
#include "runtime/tree/agreement/subtree_aggregator.hpp"

#include <catch2/catch.hpp>

using namespace horo;                 // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;        // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime::tree;  // NOLINT(google-build-using-namespace): a test of it

namespace {

SubtreeAggregator two_children() {
  return {SetId{}, {{}, RankRanges::of(0, 2), RankRanges::of(2, 2)}, nullptr};
}

std::vector<Declaration> x_from(int first, Signature signature = {}) {
  return {{.name = "x", .variants = {{signature, RankRanges::of(first, 2)}}}};
}

LogEntry run_x(std::uint64_t sequence, bool define) {
  LogEntry entry{.sequence = sequence, .kind = LogKind::work, .ids = {0}};
  if (define) entry.definitions.push_back({.id = 0, .name = "x", .signature = {}});
  return entry;
}

/// Both have declared x, and it has run once.
SubtreeAggregator after_first_run() {
  auto aggregator = two_children();
  REQUIRE(aggregator.declare(1, x_from(0)));
  REQUIRE(aggregator.declare(2, x_from(2)));
  aggregator.take_update();
  REQUIRE(aggregator.accept(run_x(0, true)));
  return aggregator;
}

}  // namespace

TEST_CASE("a tensor goes up when all subtrees have it, as one submission of all ranks") {
  auto aggregator = two_children();
  REQUIRE(aggregator.declare(2, x_from(2)));
  CHECK(aggregator.take_update().empty());
  REQUIRE(aggregator.declare(1, x_from(0)));
  const auto news = aggregator.take_update();
  REQUIRE(news.declared.size() == 1);
  CHECK(news.declared[0].variants == Variants{{Signature{}, RankRanges::of(0, 4)}});
}

TEST_CASE("an agreed tensor is sent as its number") {
  auto aggregator = after_first_run();
  REQUIRE(aggregator.ready(1, {0}));
  CHECK(aggregator.take_update().empty());
  REQUIRE(aggregator.ready(2, {0}));
  CHECK(aggregator.take_update().ready == Ids{0});
}

TEST_CASE("inputs go up in the order of the sources, if all of them have brought theirs") {
  auto aggregator = after_first_run();
  aggregator.inputs().keep(2, 0, "second");
  REQUIRE(aggregator.ready(2, {0}));
  CHECK(aggregator.take_update().empty());
  aggregator.inputs().keep(1, 0, "first");
  REQUIRE(aggregator.ready(1, {0}));
  const auto news = aggregator.take_update();
  CHECK(news.ready.empty());
  CHECK(news.carried == std::vector<CarriedTensor>{{.number = 0, .inputs = "firstsecond"}});
  REQUIRE(aggregator.accept(run_x(1, false)));
  aggregator.inputs().keep(1, 0, "first");
  REQUIRE(aggregator.ready(1, {0}));
  REQUIRE(aggregator.ready(2, {0}));
  const auto plain = aggregator.take_update();
  CHECK(plain.carried.empty());
  CHECK(plain.ready == Ids{0});
}

TEST_CASE("a change of one subtree keeps what the other agreed to") {
  auto aggregator = after_first_run();
  const Signature other{.dtype = DType::f64};
  REQUIRE(aggregator.declare(1, {{.number = 0, .variants = {{other, RankRanges::of(0, 2)}}}}));
  REQUIRE(aggregator.ready(2, {0}));
  const auto news = aggregator.take_update();
  REQUIRE(news.declared.size() == 1);
  CHECK(news.declared[0].variants ==
        Variants{{std::nullopt, RankRanges::of(2, 2)}, {other, RankRanges::of(0, 2)}});
}

TEST_CASE("joined ranks are not waited for") {
  auto aggregator = after_first_run();
  REQUIRE(aggregator.ready(1, {0}));
  REQUIRE(aggregator.joined(2, RankRanges::of(2, 1)));
  CHECK(aggregator.take_update().ready.empty());
  REQUIRE(aggregator.joined(2, RankRanges::of(3, 1)));
  const auto news = aggregator.take_update();
  REQUIRE(news.declared.size() == 1);  // The root hears whose part is missing.
  CHECK(news.declared[0].variants == Variants{{std::nullopt, RankRanges::of(0, 2)}});
  CHECK(news.joined == RankRanges::of(3, 1));
}

TEST_CASE("a source that is out of step is refused") {
  auto aggregator = after_first_run();
  CHECK_FALSE(aggregator.ready(1, {1}));  // No such number.
  REQUIRE(aggregator.ready(1, {0}));
  CHECK_FALSE(aggregator.ready(1, {0}));          // Twice.
  CHECK_FALSE(aggregator.declare(1, x_from(0)));  // Twice, the long way.
  CHECK_FALSE(aggregator.declare(2, x_from(1)));  // Not their ranks.
  CHECK_FALSE(aggregator.joined(1, RankRanges::of(2, 1)));
  REQUIRE(aggregator.ready(2, {0}));
  CHECK_FALSE(aggregator.ready(2, {0}));  // Gone up, and not back yet.
}

TEST_CASE("an evicted name is declared again, and reports of its old number are dropped") {
  auto aggregator = after_first_run();
  REQUIRE(aggregator.ready(1, {0}));
  // y takes x's place while the first child has x, and the second is about to say so.
  REQUIRE(
      aggregator.declare(1, {{.name = "y", .variants = {{Signature{}, RankRanges::of(0, 2)}}}}));
  REQUIRE(
      aggregator.declare(2, {{.name = "y", .variants = {{Signature{}, RankRanges::of(2, 2)}}}}));
  aggregator.take_update();
  LogEntry entry{.sequence = 1, .kind = LogKind::work, .ids = {kMostTensors}};
  entry.definitions.push_back({.id = kMostTensors, .name = "y", .signature = {}});
  REQUIRE(aggregator.accept(entry));
  REQUIRE(aggregator.ready(2, {0}));
  CHECK(aggregator.take_update().empty());
  // Both hear of it and say again what they have.
  const auto again = [](int first) {
    return std::vector<Declaration>{
        {.name = "x", .again = true, .variants = {{Signature{}, RankRanges::of(first, 2)}}}};
  };
  REQUIRE(aggregator.declare(1, again(0)));
  CHECK_FALSE(aggregator.declare(1, again(0)));
  // The second child has joined since; what it had said before comes first.
  REQUIRE(aggregator.joined(2, RankRanges::of(2, 2)));
  CHECK(aggregator.take_update().empty());
  REQUIRE(aggregator.declare(2, again(2)));
  const auto news = aggregator.take_update();
  REQUIRE(news.declared.size() == 1);
  CHECK(news.joined == RankRanges::of(2, 2));
  CHECK(news.declared[0].name == "x");
  CHECK_FALSE(news.declared[0].again);  // Nobody above has heard of it.
  CHECK(news.declared[0].number == kNoNumber);
  // y is known by its own number, and no later one.
  REQUIRE(aggregator.ready(1, {kMostTensors}));
  CHECK_FALSE(aggregator.ready(2, {2 * kMostTensors}));
}

TEST_CASE("numbers are given to tensors in order") {
  const auto definition_of = [](std::uint32_t number) {
    auto aggregator = after_first_run();
    REQUIRE(
        aggregator.declare(1, {{.name = "y", .variants = {{Signature{}, RankRanges::of(0, 2)}}}}));
    REQUIRE(
        aggregator.declare(2, {{.name = "y", .variants = {{Signature{}, RankRanges::of(2, 2)}}}}));
    LogEntry entry{.sequence = 1, .kind = LogKind::work, .ids = {number}};
    entry.definitions.push_back({.id = number, .name = "y", .signature = {}});
    return aggregator.accept(entry);
  };
  CHECK(definition_of(1));
  CHECK(definition_of(kMostTensors));
  CHECK_FALSE(definition_of(0));
  CHECK_FALSE(definition_of(2));
  CHECK_FALSE(definition_of(kMostTensors + 1));
  CHECK_FALSE(definition_of(2 * kMostTensors));
}

TEST_CASE("entries are accepted in order and only for tensors that are ready") {
  auto aggregator = after_first_run();
  CHECK_FALSE(aggregator.accept(run_x(0, false)));  // Had that one.
  CHECK_FALSE(aggregator.accept(run_x(1, false)));  // Nobody has submitted it again.
  auto fresh = two_children();
  REQUIRE(fresh.declare(1, x_from(0)));
  CHECK_FALSE(fresh.accept(run_x(0, true)));  // Only one has.
}
