// SPDX-License-Identifier: Apache-2.0
#include "autotune/chance/probability.hpp"

#include <cmath>
#include <numbers>

namespace horo::autotune {

namespace {

/// The continued fraction of the incomplete beta function, evaluated from the front (Lentz's
/// method). It converges quickly for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr double kPrecise = 1e-15;
  const auto safe = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / safe(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m <= 300; ++m) {
    const double twice = 2.0 * m;
    const double even = m * (b - m) * x / ((a + twice - 1) * (a + twice));
    d = 1 / safe(1 + even * d);
    c = safe(1 + even / c);
    fraction *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + twice) * (a + twice + 1));
    d = 1 / safe(1 + odd * d);
    c = safe(1 + odd / c);
    fraction *= c * d;
    if (std::abs(c * d - 1) < kPrecise) break;
  }
  return fraction;
}

/// The regularised incomplete beta function I_x(a, b).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double normal_density(double z) {
  return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
}

double normal_cumulative(double z) {
  return std::erfc(-z / std::numbers::sqrt2) / 2;
}

double student_tail(double t, double degrees) {
  if (std::isnan(t)) return 1;
  const double both = incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
  return t > 0 ? both / 2 : 1 - both / 2;
}

}  // namespace horo::autotune
