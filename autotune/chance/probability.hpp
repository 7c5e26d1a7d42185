// SPDX-License-Identifier: Apache-2.0
// Distribution functions that <cmath> does not offer. Pure.
#pragma once

namespace horo::autotune {

/// The standard normal distribution's density at `z`.
double normal_density(double z);

/// The probability that a standard normal number is below `z`.
double normal_cumulative(double z);

/// The probability that a number from Student's distribution is above `t`. `degrees` is above 0.
double student_tail(double t, double degrees);

}  // namespace horo::autotune
