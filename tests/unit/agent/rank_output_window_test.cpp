// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/rank_output_window.hpp"

#include <catch2/catch.hpp>

using horo::launcher::RankOutputWindow;

TEST_CASE("a window is full from its size on, and open again when half of it is free") {
  RankOutputWindow window(100);
  CHECK_FALSE(window.add(99));
  CHECK(window.add(1));
  CHECK(window.is_full());
  CHECK_FALSE(window.add(50));  // It was full already.
  CHECK_FALSE(window.remove(99));
  CHECK(window.remove(1));
  CHECK_FALSE(window.is_full());
  CHECK_FALSE(window.remove(1000));  // More than was sent: another host's number is not trusted.
  CHECK_FALSE(window.add(99));
}

TEST_CASE("a window of size 0 is never full") {
  RankOutputWindow window(0);
  CHECK_FALSE(window.add(1'000'000));
  CHECK_FALSE(window.is_full());
}
