// SPDX-License-Identifier: Apache-2.0
#include "autotune/chance/probability.hpp"

#include <cmath>

#include <catch2/catch.hpp>

#include "autotune/chance/draws.hpp"
#include "tests/unit/autotune/reference_figures.hpp"

using namespace horo::autotune;

TEST_CASE("the normal distribution has its known values") {
  CHECK(normal_density(0) == Approx(0.398942280401433));
  CHECK(normal_cumulative(0) == 0.5);
  CHECK(normal_cumulative(1.959963984540054) == Approx(0.975).epsilon(1e-12));
  CHECK(normal_cumulative(-10) == Approx(7.61985302416e-24).epsilon(1e-9));
}

TEST_CASE("Student's tail equals SciPy's and its closed forms") {
  const auto& figures = horo::reference::kStudent;
  for (std::size_t i = 0; i < figures.size(); i += 3)
    CHECK(student_tail(figures[i], figures[i + 1]) == Approx(figures[i + 2]).epsilon(1e-9));
  // With one degree of freedom it is Cauchy's distribution.
  CHECK(student_tail(1, 1) == Approx(0.25));
  CHECK(student_tail(0, 5) == Approx(0.5));
  CHECK(student_tail(std::nan(""), 5) == 1);
}

TEST_CASE("random numbers are the same on every machine and have their distribution's moments") {
  RandomDraws draws(1);
  CHECK(draws.uniform() == Approx(0.13387664401253274).epsilon(1e-15));
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 20000; ++i) {
    const double z = draws.normal();
    sum += z;
    squares += z * z;
  }
  CHECK(std::abs(sum / 20000) < 0.03);
  CHECK(squares / 20000 == Approx(1).epsilon(0.03));
}

TEST_CASE("Halton's points are the digits of the index, reversed") {
  CHECK(halton(0, 0) == 0.5);
  CHECK(halton(1, 0) == 0.25);
  CHECK(halton(2, 0) == 0.75);
  CHECK(halton(4, 1) == Approx(2.0 / 3 + 1.0 / 9));
}
