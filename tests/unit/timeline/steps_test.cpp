// SPDX-License-Identifier: Apache-2.0
#include "timeline/input/steps.hpp"

#include <vector>

#include <catch2/catch.hpp>

#include "timeline/analysis/lateness.hpp"
#include "timeline/analysis/verdict.hpp"
#include "timeline/view/figures_text.hpp"

using namespace horo::timeline;

namespace {

/// The steps found in tensors that are submitted one nanosecond apart, from 1 on.
std::vector<std::int64_t> lengths(const std::vector<int>& tensors) {
  StepFinder finder;
  std::vector<std::int64_t> found;
  std::int64_t now = 0;
  for (const int tensor : tensors) {
    if (const auto step = finder.submitted(static_cast<std::uint64_t>(tensor), ++now))
      found.push_back(step->to - step->from);
  }
  return found;
}

Figures with_steps(std::int64_t least, std::int64_t most) {
  Analysis analysis({}, 1);
  std::int64_t at = 0;
  for (int i = 0; i < 100; ++i) {
    const auto took = i % 2 == 0 ? least : most;
    analysis.stepped({at, at + took});
    at += took;
  }
  return analysis.finish();
}

}  // namespace

TEST_CASE("a step lasts from one submission of a tensor to the next") {
  CHECK(lengths({1, 2, 3, 1, 2, 3, 1, 2, 3}) == std::vector<std::int64_t>{3, 3});
  // A tensor that comes once before the training makes no step, and occasional tensors change
  // nothing.
  CHECK(lengths({8, 9, 1, 2, 1, 2, 7, 1, 2, 7, 1}) == std::vector<std::int64_t>{2, 3, 3});
  CHECK(lengths({1, 2, 3}).empty());
}

TEST_CASE("a step may begin at any time, and no step has a negative duration") {
  for (const std::int64_t begin : {-3, 0, 3}) {
    StepFinder finder;
    CHECK_FALSE(finder.submitted(1, begin));
    const auto step = finder.submitted(1, begin + 3);
    REQUIRE(step);
    CHECK(step->from == begin);
    CHECK(step->to == begin + 3);
    CHECK_FALSE(finder.submitted(1, begin - 10));
    CHECK(finder.submitted(1, begin - 8));
  }
}

TEST_CASE("when a tensor stops coming, another one marks the steps") {
  std::vector<int> tensors{1, 2, 1, 2, 1};
  for (int i = 0; i < 20; ++i) {
    tensors.push_back(3);
    tensors.push_back(4);
  }
  const auto found = lengths(tensors);
  REQUIRE(found.size() > 5);
  CHECK(found[0] == 2);
  CHECK(found[1] == 2);
  for (std::size_t i = 2; i < found.size(); ++i) CHECK(found[i] == 2);
}

TEST_CASE("lateness is kept for any length of time, in parts whose width doubles") {
  LatenessOverTime map;
  map.add(3, 0, 10);
  map.add(3, 1'500'000, 30);
  map.add(4, 70'000'000, 50);  // Past 64 ms: parts of 2 ms.
  CHECK(map.width_ns() == 2'000'000);
  CHECK(map.rows().at(3)[0].times == 2);
  CHECK(map.rows().at(3)[0].late_ns == 40);
  CHECK(map.rows().at(4)[35].late_ns == 50);
  map.add(4, INT64_MAX, 1);
  CHECK(map.rows().at(3)[0].late_ns == 40);
}

TEST_CASE("a comparison marks differences that are within noise") {
  const auto text = compare_text(with_steps(900, 1100), with_steps(905, 1105));
  const auto row = text.substr(text.find("\nstep"),
                               text.find('\n', text.find("\nstep") + 1) - text.find("\nstep"));
  CHECK(row.find("within noise") != std::string::npos);
  const auto slower = compare_text(with_steps(900, 1100), with_steps(1800, 2200));
  const auto other = slower.substr(slower.find("\nstep"), 100);
  CHECK(other.find("2.00  +- 3 %\n") != std::string::npos);
}

TEST_CASE("times, sizes and rates have three digits in a fitting unit") {
  CHECK(time_text(999.7e3) == "1 ms");
  CHECK(time_text(12345e9) == "12345 s");
  CHECK(bytes_text(1000.0 * 1024) == "0.977 MiB");
  CHECK(rate_text(4370, 1e9) == "4.37 kB/s");
  CHECK(rate_text(43, 1e9) == "43 B/s");
  CHECK(rate_text(1e6, 1e3) == "1 TB/s");
  CHECK(rate_text(1, 0) == "-");
}
