// SPDX-License-Identifier: Apache-2.0
#include "timeline/analysis/analysis.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "timeline/analysis/verdict.hpp"
#include "timeline/view/figures_text.hpp"

using namespace horo::timeline;

namespace {

constexpr std::int64_t kMs = 1'000'000;

/// One step of 30 ms, in which rank `last` arrives 20 ms after the others.
ObservedOperation step(std::int64_t i, int last, std::uint64_t bytes = 4 << 20) {
  const auto at = i * 30 * kMs;
  ObservedOperation operation{
      .name = "grad", .kind = "ALLREDUCE", .mover = "SHM", .bytes = bytes, .ranks = 3};
  for (int rank = 0; rank < 3; ++rank)
    operation.arrivals.push_back({rank, at + (rank == last ? 20 * kMs : 0)});
  operation.submitted = at;
  operation.agreed = operation.begun = at + 20 * kMs;
  operation.ended = operation.begun + kMs;
  return operation;
}

bool says(const Figures& figures, std::string_view kind, std::string_view words) {
  for (const auto& verdict : judge(figures)) {
    if (verdict.kind == kind) return verdict.text.find(words) != std::string::npos;
  }
  return false;
}

}  // namespace

TEST_CASE("control characters in names are not printed") {
  Analysis analysis({}, 5);
  for (int i = 0; i < 40; ++i) {
    auto operation = step(i, 1);
    operation.name =
        "\x1b[31m\nred\xc2\x9b"
        "2J\x7f\xc2\xa9\xc3\x9f\xff\x9b\xe2\x82";
    operation.kind = "\x1b]0;title\a";
    analysis.operation(operation);
  }
  analysis.saw_rank(0, "host\x1b[0m");
  analysis.mismatched(0, "of\x1b[0m", 0);
  const auto figures = analysis.finish();
  for (const auto& text : {as_text(figures), as_csv(figures), compare_text(figures, figures)}) {
    INFO(text);
    CHECK(text.find_first_of("\x1b\x7f\a") == std::string::npos);
    CHECK(text.find('\x9b') == std::string::npos);
  }
  CHECK(as_text(figures).find("?[31m?red??2J?\xc2\xa9\xc3\x9f????") != std::string::npos);
}

TEST_CASE("the summary counts the operations of each path between hosts, with the reason") {
  Analysis analysis({}, 5);
  for (int i = 0; i < 3; ++i) {
    auto operation = step(i, 1);
    operation.path = i == 0 ? "by hosts" : "whole";
    operation.path_reason = i == 0 ? "each byte crosses once" : "too small for two more steps";
    analysis.operation(operation);
  }
  const auto figures = analysis.finish();
  const auto text = as_text(figures);
  CHECK(text.find("by hosts     1 operation: each byte crosses once\n") != std::string::npos);
  CHECK(text.find("whole        2 operations: too small for two more steps\n") !=
        std::string::npos);
  CHECK(as_json(figures).find(R"("path": "whole")") != std::string::npos);
}

TEST_CASE("a set on one host has no paths in its summary") {
  Analysis analysis({}, 5);
  analysis.operation(step(0, 1));
  const auto figures = analysis.finish();
  CHECK(figures.paths.empty());
  CHECK(as_text(figures).find("between hosts") == std::string::npos);
}

TEST_CASE("the last changes of the tuning are listed with their times") {
  Analysis analysis({}, 5);
  analysis.operation(step(0, 1));
  for (int i = 0; i < 12; ++i)
    analysis.tuned({.ns = i * kMs, .changes = fmt::format("wake.delay {} us to 7 us", i)});
  const auto figures = analysis.finish();
  const auto text = as_text(figures);
  CHECK(text.find("tuning changed 12 times, the last 10:\n") != std::string::npos);
  CHECK(text.find(": wake.delay 11 us to 7 us\n") != std::string::npos);
  CHECK(text.find("wake.delay 1 us to 7 us") == std::string::npos);
  CHECK(as_json(figures).find(R"("changes": "wake.delay 1 us to 7 us")") != std::string::npos);
}

TEST_CASE("generations of an elastic job are listed once, with the time of the first rank") {
  Analysis analysis({}, 5);
  analysis.operation(step(0, 1));
  for (const std::int64_t ns : {7 * kMs, 5 * kMs, 6 * kMs})
    analysis.entered({.ns = ns, .generation = 2, .ranks = 3, .survivors = 2});
  const auto figures = analysis.finish();
  REQUIRE(figures.generations.size() == 1);
  CHECK(figures.generations.at(2).ns == 5 * kMs);
  CHECK(as_text(figures).find(": generation 2: 3 ranks, 2 of the one before\n") !=
        std::string::npos);
  CHECK(as_json(figures).find(R"("generation": 2)") != std::string::npos);
}

TEST_CASE("a rank that the others waited for at the end is named if the wait was long") {
  const UnfinishedOperation what{
      .name = "grad", .when = {0, 40'000 * kMs}, .waiting = {0, 2}, .missing = {1}};
  Analysis analysis({}, 5);
  for (int i = 0; i < 40; ++i) analysis.operation(step(i, 1));
  analysis.saw_rank(1, "h2");
  SECTION("a long wait") {
    analysis.unfinished(what);
    const auto figures = analysis.finish();
    CHECK(judge(figures).front().kind == "hang");
    CHECK(says(figures, "hang",
               "rank 1 on h2 had not submitted 'grad', for which 2 ranks had waited 40 s"));
  }
  SECTION("a short wait") {
    auto moment = what;
    moment.when.to = 4'900 * kMs;
    analysis.unfinished(moment);
    CHECK_FALSE(says(analysis.finish(), "hang", ""));
  }
  SECTION("the rank was lost, which another verdict says") {
    analysis.unfinished(what);
    analysis.lost(0, 1, 5 * kMs);
    CHECK_FALSE(says(analysis.finish(), "hang", ""));
  }
}

TEST_CASE("a rank that always arrives last is a straggler, and its cost is given") {
  Analysis analysis({}, 5);
  for (int i = 0; i < 40; ++i) analysis.operation(step(i, 1));
  const auto figures = analysis.finish();
  CHECK(figures.ranks.at(1).last == 40);
  CHECK(figures.ranks.at(1).caused_wait_ns == Approx(40 * 20e6));
  CHECK(figures.ranks.at(0).last == 0);
  CHECK(says(figures, "straggler", "rank 1 is a straggler: last in 40 of 40"));
}

TEST_CASE("lateness that no rank waits for gives no verdict") {
  Analysis analysis({}, 5);
  for (int i = 0; i < 40; ++i) {
    analysis.operation(step(i, 1));
    analysis.waited(0, {(i * 30 + 15) * kMs, (i * 30 + 21) * kMs});
  }
  const auto figures = analysis.finish();
  CHECK(figures.ranks.at(1).last_by_ns == Approx(40 * 20e6));
  CHECK(figures.ranks.at(1).caused_wait_ns == Approx(40 * 5e6));
}

TEST_CASE("ranks that take turns in being slightly late give no verdict") {
  Analysis analysis({}, 5);
  for (int i = 0; i < 40; ++i) {
    auto operation = step(i, -1);
    operation.arrivals[static_cast<std::size_t>(i % 3)].ns += kMs / 10;
    operation.agreed = operation.submitted + kMs / 10;
    analysis.operation(operation);
  }
  CHECK_FALSE(says(analysis.finish(), "straggler", ""));
}

TEST_CASE("waiting for a late rank is not exposed communication") {
  Analysis analysis({}, 0);
  analysis.communicated(0, {100 * kMs, 110 * kMs});
  analysis.waited(0, {0, 110 * kMs});
  CHECK(analysis.finish().ranks.at(0).exposed_ns == Approx(10e6));
}

TEST_CASE("bus bandwidth counts the bytes that cross between ranks") {
  Analysis analysis({}, 5);
  analysis.operation(step(0, 0, 4 << 20));
  const auto figures = analysis.finish();
  REQUIRE(figures.sizes.size() == 1);
  const auto& size = figures.sizes.begin()->second;
  CHECK(size.least_bytes == 4 << 20);
  CHECK(size.bus_bytes == Approx(size.bytes * 4 / 3));
}

TEST_CASE("waiting is exposed communication, overlapped computation is not") {
  Analysis waits({}, 0);
  waits.communicated(0, {0, 100 * kMs});
  waits.waited(0, {0, 50 * kMs});
  waits.waited(0, {40 * kMs, 60 * kMs});  // Another thread: together 60.
  CHECK(waits.finish().ranks.at(0).exposed_ns == Approx(60e6));
  Analysis profile({}, 0);
  profile.communicated(0, {0, 100 * kMs});
  profile.computed(0, {50 * kMs, 200 * kMs});
  const auto figures = profile.finish();
  CHECK(figures.ranks.at(0).exposed_ns == Approx(50e6));
  CHECK(says(figures, "exposed", "25 %"));
}

TEST_CASE("a selection leaves out other ranks and times") {
  Analysis analysis({.rank = 1, .from = 0.1, .to = 0.2}, 100);
  for (int i = 0; i < 40; ++i) analysis.operation(step(i, 1));
  const auto figures = analysis.finish();
  CHECK(figures.shows(1));
  CHECK_FALSE(figures.shows(0));
  CHECK(figures.operations < 6);
  CHECK(figures.operations > 2);
}

TEST_CASE("operations before the first event or long after it are counted") {
  constexpr std::int64_t kMillion = 1'000'000;
  Analysis analysis({}, 5);
  for (const std::int64_t i : {kMillion, std::int64_t{0}, 60'000 * kMillion})
    analysis.operation(step(i, 1));
  const auto figures = analysis.finish();
  CHECK(figures.operations == 3);
  CHECK(figures.origin_ns == 0);
  REQUIRE(figures.slowest.size() == 3);
  for (const auto& slow : figures.slowest) CHECK(slow.at_ns >= 0);
}

TEST_CASE("an unknown size is not small, and no share exceeds 100 %") {
  for (const std::uint64_t bytes : {0, 100}) {
    Analysis analysis({}, 0);
    for (int i = 0; i < 40; ++i) {
      for (int row = 0; row < 3; ++row) {
        auto operation = step(i, 1, bytes);
        operation.begun = operation.submitted;
        analysis.operation(operation);
      }
    }
    const auto figures = analysis.finish();
    CHECK(figures.small == (bytes == 0 ? 0U : 120U));
    CHECK(says(figures, "small_buckets", "take 100 % of the time") == (bytes != 0));
  }
}

TEST_CASE("the straggler is named also where one rank is selected") {
  for (const int rank : {-1, 0, 1}) {
    INFO(rank);
    Analysis analysis({.rank = rank}, 5);
    for (std::int64_t i = 0; i < 40; ++i) {
      analysis.operation(step(i, 1));
      analysis.waited(0, {i * 30 * kMs, (i * 30 + 21) * kMs});
      analysis.waited(1, {(i * 30 + 20) * kMs, (i * 30 + 21) * kMs});
    }
    const auto figures = analysis.finish();
    CHECK(figures.ranks.at(1).caused_wait_ns == Approx(40 * 20e6));
    CHECK(says(figures, "straggler", "rank 1 is a straggler: last in 40 of 40"));
    CHECK(figures.ranks.at(0).waited_ns == Approx(rank == 1 ? 0 : 40 * 21e6));
  }
}

TEST_CASE("an interval that crosses the end of the selection counts with its part inside") {
  Analysis analysis({.from = 5, .to = 6}, 5);
  analysis.starts(0);
  auto operation = step(0, 1);
  operation.arrivals = {{0, 1000 * kMs}, {1, 9000 * kMs}};
  operation.submitted = 1000 * kMs;
  operation.agreed = operation.begun = 9000 * kMs;
  operation.ended = 9001 * kMs;
  analysis.operation(operation);
  analysis.waited(0, {2000 * kMs, 9001 * kMs});
  analysis.communicated(0, {1000 * kMs, 9001 * kMs});
  const auto figures = analysis.finish();
  CHECK(figures.span_ns() == Approx(1e9));
  CHECK(figures.held_up_ns == Approx(1e9));
  CHECK(figures.busy_ns == 0);
  CHECK(figures.ranks.at(0).waited_ns == Approx(1e9));
  CHECK(figures.ranks.at(0).exposed_ns == Approx(1e9));
  CHECK(figures.ranks.at(1).caused_wait_ns == Approx(1e9));
}

TEST_CASE("events outside the selected time are not reported") {
  for (const double from : {0.0, 5.0, 7.0}) {
    INFO(from);
    Analysis analysis({.from = from, .to = from + 1}, 5);
    analysis.starts(0);
    analysis.stalled(0, 3, 5500 * kMs);
    analysis.mismatched(0, "grad", 5500 * kMs);
    analysis.lost(0, 1, 5500 * kMs);
    const auto figures = analysis.finish();
    CHECK(figures.stalls == (from == 5 ? 3U : 0U));
    CHECK(figures.mismatches.size() == (from == 5 ? 1U : 0U));
    CHECK(figures.culprits.size() == (from == 5 ? 1U : 0U));
  }
}

TEST_CASE("times are printed and selected from the same origin") {
  // Without a selection the origin is the earliest event, even of a file that is read later.
  Analysis all({}, 5);
  all.starts(1000 * kMs);
  all.operation(step(50, 1));
  all.starts(0);
  all.operation(step(0, 1));
  const auto figures = all.finish();
  CHECK(figures.origin_ns == 0);
  REQUIRE(figures.slowest.size() == 2);
  CHECK(figures.slowest[0].at_ns == 1500 * kMs);
  CHECK(figures.slowest[1].at_ns == 0);
  // With a selection the origin stays where it was at the first use.
  Analysis part({.from = 0, .to = 1}, 5);
  part.starts(2000 * kMs);
  part.starts(1000 * kMs);
  part.operation(step(50, 1));
  part.starts(0);
  part.operation(step(0, 1));
  part.operation(step(60, 1));
  const auto selected = part.finish();
  CHECK(selected.operations == 2);
  CHECK(selected.origin_ns == 1000 * kMs);
}

TEST_CASE("the requested number of slowest operations is listed, slowest first") {
  Analysis analysis({}, 3);
  for (int i = 0; i < 50; ++i) {
    auto operation = step(0, 0);
    operation.ended += (i * 7 % 50) * kMs;
    analysis.operation(operation);
  }
  const auto figures = analysis.finish();
  REQUIRE(figures.slowest.size() == 3);
  CHECK(figures.slowest[0].took_ns == 70 * kMs);
  CHECK(figures.slowest[2].took_ns == 68 * kMs);
}

TEST_CASE("a histogram's percentiles have an error of at most a quarter") {
  Histogram histogram;
  for (std::int64_t i = 1; i <= 1000; ++i) histogram.add(i * 1000);
  CHECK(histogram.percentile(0.5) == Approx(500e3).epsilon(0.25));
  CHECK(histogram.percentile(0.95) == Approx(950e3).epsilon(0.25));
  CHECK(histogram.percentile(1) <= 1e6);
  CHECK(histogram.mean() == Approx(500.5e3));
  Histogram extremes;
  extremes.add(-5);
  extremes.add(std::numeric_limits<std::int64_t>::max());
  CHECK(extremes.count() == 2);
}

TEST_CASE("intervals have the same sums in one piece and in many") {
  Overlap overlap;
  for (std::int64_t i = 0; i < 100'000; ++i) {
    overlap.add_first({i * 10, i * 10 + 6});
    overlap.add_second({i * 10 + 3, i * 10 + 8});
  }
  const auto sums = overlap.sums();
  CHECK(sums.first_ns == Approx(600'000));
  CHECK(sums.second_ns == Approx(500'000));
  CHECK(sums.both_ns == Approx(300'000).epsilon(0.001));
}
