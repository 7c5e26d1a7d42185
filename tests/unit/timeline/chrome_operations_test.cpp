// SPDX-License-Identifier: Apache-2.0
#include "timeline/input/chrome_operations.hpp"

#include <malloc.h>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "timeline/analysis/analysis.hpp"
#include "timeline/analysis/verdict.hpp"

using namespace horo::timeline;
using horo::timeline::ChromeEvent;

namespace {

std::size_t used_memory() {
  const auto of = mallinfo2();
  return of.uordblks + of.hblkhd;
}

/// The events of an operation as Horovod writes them, after the row's name.
void take_operation(ChromeOperations& trace, std::string_view pid, std::string_view name,
                    double us) {
  ChromeEvent row{.phase = 'M', .name = "process_name", .pid = pid};
  row.arguments.emplace_back("name", name);
  trace.take(row);
  trace.take({.phase = 'B', .name = "NEGOTIATE_ALLREDUCE", .pid = pid, .ts_us = us});
  for (const auto* rank : {"0", "1"})
    trace.take({.phase = 'X', .name = rank, .pid = pid, .ts_us = us});
  trace.take({.phase = 'E', .pid = pid, .ts_us = us + 1});
  trace.take({.phase = 'B', .name = "ALLREDUCE", .pid = pid, .ts_us = us + 2});
  trace.take({.phase = 'E', .pid = pid, .ts_us = us + 3});
}

/// Five steps of a tensor as Horovod writes them; the first one is at `us`.
Figures training_from(double us) {
  Analysis analysis({}, 5);
  ChromeOperations trace(analysis);
  for (int i = 0; i < 5; ++i) {
    const auto at = us + i * 1000;
    trace.take({.phase = 'B', .name = "NEGOTIATE_ALLREDUCE", .pid = "1", .ts_us = at});
    trace.take({.phase = 'X', .name = "0", .pid = "1", .ts_us = at});
    trace.take({.phase = 'X', .name = "1", .pid = "1", .ts_us = at + 100});
    trace.take({.phase = 'E', .pid = "1", .ts_us = at + 100});
    trace.take({.phase = 'B', .name = "ALLREDUCE", .pid = "1", .ts_us = at + 100});
    trace.take({.phase = 'B', .name = "MPI_ALLREDUCE", .pid = "1", .ts_us = at + 110});
    trace.take({.phase = 'E', .pid = "1", .ts_us = at + 160});
    trace.take({.phase = 'E', .pid = "1", .ts_us = at + 160});
  }
  trace.finish();
  return analysis.finish();
}

}  // namespace

TEST_CASE("the path of a bucket between hosts is read from the end of its data movement") {
  Analysis analysis({}, 5);
  ChromeOperations trace(analysis);
  trace.take({.phase = 'B', .name = "ALLREDUCE", .pid = "1", .ts_us = 1});
  trace.take({.phase = 'B', .name = "GLOO_ALLREDUCE", .pid = "1", .ts_us = 2});
  ChromeEvent moved{.phase = 'E', .pid = "1", .ts_us = 3};
  moved.arguments.emplace_back("path", "by hosts");
  moved.arguments.emplace_back("reason", "each byte crosses once");
  trace.take(moved);
  trace.take({.phase = 'E', .pid = "1", .ts_us = 4});
  trace.finish();
  const auto figures = analysis.finish();
  REQUIRE(figures.paths.size() == 1);
  CHECK(figures.paths.begin()->first ==
        std::pair<std::string, std::string>("by hosts", "each byte crosses once"));
}

TEST_CASE("a straggler of Horovod is named by the few operations that have ticks") {
  // Cached tensors have none. Ranks whose requests came in one cycle are a microsecond apart.
  const bool together = GENERATE(false, true);
  Analysis analysis({}, 5);
  ChromeOperations trace(analysis);
  for (int i = 0; i < 60; ++i) {
    const double at = i * 100'000.0;
    const bool cached = i % 6 != 0;
    const auto* const pid = cached ? "1" : "2";
    trace.take({.phase = 'B', .name = "NEGOTIATE_ALLREDUCE", .pid = pid, .ts_us = at});
    const auto tick = [&](std::string_view rank, double us) {
      if (!cached) trace.take({.phase = 'X', .name = rank, .pid = pid, .ts_us = at + us});
    };
    tick("0", 0);
    tick("1", together ? 29'999 : 50);
    tick("2", 30'000);
    trace.take({.phase = 'E', .pid = pid, .ts_us = at + 30'000});
    trace.take({.phase = 'B', .name = "ALLREDUCE", .pid = pid, .ts_us = at + 30'001});
    trace.take({.phase = 'E', .pid = pid, .ts_us = at + 30'100});
  }
  trace.finish();
  const auto verdict = judge(analysis.finish()).front();
  INFO(verdict.text);
  if (together) {
    CHECK(verdict.kind == "late_ranks");
    CHECK(verdict.text.find("may be chance (p = 1)") != std::string::npos);
  } else {
    CHECK(verdict.kind == "straggler");
    CHECK(verdict.text.find("rank 2 is probably a straggler: last in 10 of 10 operations") == 0);
    CHECK(verdict.text.find("only 10 of 60 operations show which") != std::string::npos);
  }
}

TEST_CASE("a trace may begin at any time, at zero and at negative times") {
  for (const double us : {1e6, 0.0, -110.0, -2500.0, -250'000.0, 1.7e12}) {
    INFO(us);
    const auto figures = training_from(us);
    CHECK(figures.warnings.empty());
    CHECK(figures.operations == 5);
    CHECK(figures.with_arrivals == 5);
    CHECK(figures.origin_ns == static_cast<std::int64_t>(us * 1000));
    CHECK(figures.span_ns() == Approx(4'160'000));
    CHECK(figures.moving_ns == Approx(5 * 50'000));
    CHECK(figures.held_up_ns == Approx(5 * 100'000));
    CHECK(figures.negotiation.sum() == Approx(5 * 100'000));
    CHECK(figures.step.count() == 4);
    REQUIRE(figures.ranks.contains(1));
    CHECK(figures.ranks.at(1).last == 5);
  }
}

TEST_CASE("a trace begins at its earliest event of any kind") {
  Analysis analysis({}, 5);
  ChromeOperations trace(analysis);
  trace.take({.phase = 'M', .name = "process_name", .pid = "1", .ts_us = 1});
  trace.take({.phase = 'i', .name = "CYCLE_START", .ts_us = 472});
  take_operation(trace, "2", "grad", 900);
  const auto figures = analysis.finish();
  CHECK(figures.origin_ns == 472'000);
  CHECK(ChromeOperations::time_of({.phase = 'i', .ts_us = 472}) == 472'000);
  CHECK_FALSE(ChromeOperations::time_of({.phase = 'M', .ts_us = 1}));
}

TEST_CASE("events out of order give a warning, and no phase ends before it begins") {
  Analysis analysis({}, 5);
  ChromeOperations trace(analysis);
  trace.take({.phase = 'B', .name = "NEGOTIATE_ALLREDUCE", .pid = "1", .ts_us = 900});
  trace.take({.phase = 'E', .pid = "1", .ts_us = 950});
  trace.take({.phase = 'B', .name = "ALLREDUCE", .pid = "1", .ts_us = 980});
  trace.take({.phase = 'B', .name = "MPI_ALLREDUCE", .pid = "1", .ts_us = 700});
  trace.take({.phase = 'E', .pid = "1", .ts_us = 600});
  trace.take({.phase = 'E', .pid = "1", .ts_us = 610});
  trace.finish();
  const auto figures = analysis.finish();
  REQUIRE(figures.warnings.size() == 1);
  CHECK(figures.warnings[0].find("earlier than the one before it in its row, 2 times") !=
        std::string::npos);
  CHECK(figures.moving_ns >= 0);
  REQUIRE(figures.slowest.size() == 1);
  CHECK(figures.slowest[0].took_ns >= 0);
  CHECK(figures.slowest[0].moved_ns >= 0);
}

TEST_CASE("one jump of the clock is counted once") {
  Analysis analysis({}, 5);
  ChromeOperations trace(analysis);
  take_operation(trace, "1", "grad", 9e6);
  for (int i = 0; i < 3; ++i) take_operation(trace, "1", "grad", i * 10.0);
  trace.finish();
  const auto figures = analysis.finish();
  REQUIRE(figures.warnings.size() == 1);
  CHECK(figures.warnings[0].starts_with("the clock jumped back once;"));
}

TEST_CASE("activities that never end take bounded memory") {
  Analysis analysis({}, 5);
  ChromeOperations trace(analysis);
  const auto before = used_memory();
  for (int i = 0; i < 1'000'000; ++i)
    trace.take({.phase = 'B', .name = "ALLREDUCE", .pid = "1", .ts_us = i * 1.0});
  CHECK(used_memory() - before < std::size_t{8} << 20U);
}

TEST_CASE("a profile's figures belong to its rank, and no time is negative") {
  Analysis analysis({}, 5);
  ChromeOperations trace(analysis);
  const auto take = [&trace](std::string_view name, double us, double duration, int rank) {
    trace.take({.phase = 'X',
                .name = name,
                .category = "kernel",
                .pid = "0",
                .ts_us = us,
                .duration_us = duration,
                .rank = rank});
  };
  take("ncclAllReduce", 100, 50, 3);
  take("gemm", 200, 70, 3);
  take("ncclAllReduce", 400, -50, 3);
  trace.finish();
  const auto figures = analysis.finish();
  REQUIRE(figures.ranks.size() == 1);
  CHECK(figures.ranks.at(3).communicated_ns == Approx(50'000));
  CHECK(figures.ranks.at(3).computed_ns == Approx(70'000));
  CHECK(figures.moving_ns == Approx(50'000));
}

TEST_CASE("a tensor larger than any memory does not overflow") {
  for (const auto* shape : {"[18446744073709551615, 18446744073709551615]",
                            "[99999999999999999999, 2]", "[4294967296, 4294967296, 4294967296]"}) {
    INFO(shape);
    Analysis analysis({}, 5);
    ChromeOperations trace(analysis);
    trace.take({.phase = 'B', .name = "ALLREDUCE", .pid = "1", .ts_us = 1});
    ChromeEvent end{.phase = 'E', .pid = "1", .ts_us = 2};
    end.arguments.emplace_back("dtype", "float64");
    end.arguments.emplace_back("shape", shape);
    trace.take(end);
    const auto figures = analysis.finish();
    REQUIRE(figures.slowest.size() == 1);
    CHECK(figures.slowest[0].bytes == std::uint64_t{1} << 43U);
  }
}

TEST_CASE("operations with a row each take bounded memory") {
  Analysis analysis({}, 5);
  ChromeOperations trace(analysis);
  const auto before = used_memory();
  constexpr int kOperations = 300'000;
  for (int i = 1; i <= kOperations; ++i)
    take_operation(trace, fmt::format("{}", i), fmt::format("allreduce.noname.{}", i), i * 10.0);
  CHECK(used_memory() - before < std::size_t{64} << 20U);
  trace.finish();
  CHECK(analysis.finish().operations == kOperations);
}

TEST_CASE("a row that was idle while many others came keeps its name") {
  Analysis analysis({}, 100);
  ChromeOperations trace(analysis);
  take_operation(trace, "1", "first", 1);
  for (int i = 2; i < 50'000; ++i)
    take_operation(trace, fmt::format("{}", i), fmt::format("noname.{}", i), i * 10.0);
  trace.take({.phase = 'B', .name = "ALLREDUCE", .pid = "1", .ts_us = 1e6});
  trace.take({.phase = 'E', .pid = "1", .ts_us = 9e6});
  const auto figures = analysis.finish();
  REQUIRE_FALSE(figures.slowest.empty());
  CHECK(figures.slowest.front().name == "first");
}
