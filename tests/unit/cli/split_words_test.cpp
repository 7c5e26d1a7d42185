// SPDX-License-Identifier: Apache-2.0
#include "base/cli/split_words.hpp"

#include <catch2/catch.hpp>

using horo::split_words;
using Words = std::vector<std::string>;

TEST_CASE("words are split as a shell does") {
  CHECK(split_words("  -a  'b c' \"d e\"f g\\ h '' ").value() ==
        Words{"-a", "b c", "d ef", "g h", ""});
  CHECK(split_words("").value().empty());
  CHECK(split_words("a 'b").error().message.find("'a 'b' does not end") != std::string::npos);
}
