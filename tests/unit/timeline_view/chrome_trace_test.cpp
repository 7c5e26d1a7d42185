// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/chrome_trace.hpp"

#include <malloc.h>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "apps/timeline_view/analysis.hpp"

using namespace horo::apps;
using horo::timeline::ChromeEvent;

namespace {

std::size_t used_memory() {
  const auto of = mallinfo2();
  return of.uordblks + of.hblkhd;
}

/// An operation as Horovod writes it, its row's name in front.
void take_operation(ChromeTrace& trace, std::string_view pid, std::string_view name, double us) {
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

}  // namespace

TEST_CASE("operations with a row each take no more memory the more there are") {
  Analysis analysis({}, 5);
  ChromeTrace trace(analysis);
  const auto before = used_memory();
  constexpr int kOperations = 300'000;
  for (int i = 1; i <= kOperations; ++i)
    take_operation(trace, fmt::format("{}", i), fmt::format("allreduce.noname.{}", i), i * 10.0);
  CHECK(used_memory() - before < std::size_t{64} << 20U);
  trace.finish(-1);
  CHECK(analysis.finish().operations == kOperations);
}

TEST_CASE("a row that was idle while many others came has its name still") {
  Analysis analysis({}, 100);
  ChromeTrace trace(analysis);
  take_operation(trace, "1", "first", 1);
  for (int i = 2; i < 50'000; ++i)
    take_operation(trace, fmt::format("{}", i), fmt::format("noname.{}", i), i * 10.0);
  trace.take({.phase = 'B', .name = "ALLREDUCE", .pid = "1", .ts_us = 1e6});
  trace.take({.phase = 'E', .pid = "1", .ts_us = 9e6});
  const auto figures = analysis.finish();
  REQUIRE_FALSE(figures.slowest.empty());
  CHECK(figures.slowest.front().name == "first");
}
