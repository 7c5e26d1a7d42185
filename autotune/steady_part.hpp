// SPDX-License-Identifier: Apache-2.0
// Finds where a sequence of steps has become steady. Pure.
//
// After a change, steps may be slow for a while: TCP's window of a connection that is new, or that
// was idle, grows by a round trip at a time. A mean over such steps says how slow the beginning is,
// not how fast the training will run with the setting.
#pragma once

#include <cstddef>
#include <span>

namespace horo::autotune {

/// The first of `times` that counts: those before it are significantly slower than the others. At
/// most half of them are left out, so a caller that wants as many as before goes on measuring.
///
/// The cut is where the squared standard error of the mean of the rest is smallest (White, "An
/// Effective Truncation Heuristic for Bias Reduction in Simulation Output", 1997). Noise alone is
/// seldom cut, because the part before the cut must be slower by several standard errors.
std::size_t steady_begin(std::span<const double> times);

}  // namespace horo::autotune
