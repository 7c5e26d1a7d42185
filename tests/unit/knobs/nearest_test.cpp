// SPDX-License-Identifier: Apache-2.0
#include "base/knobs/nearest.hpp"

#include <catch2/catch.hpp>

using horo::did_you_mean;
using horo::edit_distance;

TEST_CASE("edit distance counts insertions, deletions, replacements and swaps") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "abc") == 0);
  CHECK(edit_distance("abc", "acb") == 1);
  CHECK(edit_distance("treshold", "threshold") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("a similar word is suggested and a different one is not") {
  CHECK(did_you_mean("fusion.treshold", {"cycle.time", "fusion.threshold"}) ==
        "; did you mean 'fusion.threshold'?");
  CHECK(did_you_mean("zebra", {"cycle.time", "fusion.threshold"}).empty());
}
