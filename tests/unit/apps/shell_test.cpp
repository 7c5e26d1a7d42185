// SPDX-License-Identifier: Apache-2.0
#include "apps/common/shell.hpp"

#include <catch2/catch.hpp>

using horo::apps::shell_quoted;

TEST_CASE("a quoted word is one word for a shell, whatever it contains") {
  CHECK(shell_quoted("") == "''");
  CHECK(shell_quoted("a b $HOME \"c\"\n*") == "'a b $HOME \"c\"\n*'");
  CHECK(shell_quoted("it's") == "'it'\\''s'");
}
