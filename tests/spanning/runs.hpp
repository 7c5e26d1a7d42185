// SPDX-License-Identifier: Apache-2.0
// How much a test case does. Once by CTest, it does everything. In many runs of one process, each
// with a seed of its own, it draws a small part per run, so that thousands of runs are cheap:
//
//   test_spanning --runs N [--first-seed S] [arguments of Catch2]
//
// A run makes all its boards, connections and sessions anew; its seed draws the delays too. Several
// of these processes may run beside each other, with seeds of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.hpp"

namespace horo::spanning {

/// Many runs are made, and this is one of them.
bool is_one_of_many();

/// The seed of the run, or of HORO_SIM_SEED, or a random one.
std::uint64_t run_seed();

/// Time limit for what ends quickly unless it hangs. Many runs may get little of the machine: they
/// have longer.
Duration patience();

/// `usual` times; fewer in one of many runs.
inline int times(int usual, int in_many = 1) {
  return is_one_of_many() ? in_many : usual;
}

/// All of them; one, by the seed, in one of many runs.
template <typename T>
std::vector<T> drawn_from(std::vector<T> all) {
  if (!is_one_of_many()) return all;
  return {all[static_cast<std::size_t>(run_seed() % all.size())]};
}

}  // namespace horo::spanning
