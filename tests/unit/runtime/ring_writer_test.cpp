// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/ring_writer.hpp"

#include <catch2/catch.hpp>

using horo::runtime::RingPath;

namespace {

/// How many of `pieces` pieces bypassed the caches.
int pieces_around(RingPath& path, int pieces, double through, double around) {
  int count = 0;
  for (int i = 0; i < pieces; ++i) {
    const bool goes_around = path.next();
    path.measured(goes_around, goes_around ? around : through);
    if (goes_around) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("ring writes bypass the caches where that is faster by far") {
  constexpr int kRun = 10 * static_cast<int>(RingPath::kEvery);
  RingPath path;
  CHECK(pieces_around(path, kRun, 1.0, 0.9) == 14);  // Tried now and then.
  CHECK(pieces_around(path, kRun, 5.0, 1.0) > kRun / 2);
  CHECK(path.around());
  CHECK(pieces_around(path, kRun, 1.0, 1.0) < kRun / 2);
  CHECK_FALSE(path.around());
}

TEST_CASE("one interrupted piece does not change how a ring is written") {
  RingPath path;
  pieces_around(path, 10, 1.0, 0.9);
  path.measured(false, 100.0);
  CHECK_FALSE(path.around());
}

TEST_CASE("a slow first touch of a ring does not decide how it is written") {
  RingPath path;
  CHECK(pieces_around(path, 3, 50.0, 5.0) >= 1);
  pieces_around(path, 13, 1.0, 5.0);
  CHECK_FALSE(path.around());
}
