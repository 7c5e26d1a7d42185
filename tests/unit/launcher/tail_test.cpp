// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/tail.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

using namespace horo::launcher;

using Lines = std::vector<std::string>;

TEST_CASE("the tail keeps the last ten lines, oldest first") {
  Tail tail;
  CHECK(tail.lines().empty());
  for (int i = 0; i < 25; ++i) tail.add({.body = fmt::format("line {}", i), .end = "\n"});
  const auto lines = tail.lines();
  REQUIRE(lines.size() == 10);
  CHECK(lines.front() == "line 15");
  CHECK(lines.back() == "line 24");
}

TEST_CASE("a progress bar counts as one line, with its newest text") {
  Tail tail;
  tail.add({.body = "epoch 1", .end = "\n"});
  for (int i = 0; i < 100; ++i) tail.add({.body = fmt::format("{}%", i), .end = "\r"});
  CHECK(tail.lines() == Lines{"epoch 1", "99%"});
  tail.add({.body = {}, .end = "\n", .continues = true});
  tail.add({.body = "epoch 2", .end = "\n"});
  CHECK(tail.lines() == Lines{"epoch 1", "99%", "epoch 2"});
}

TEST_CASE("a long line is cut, and its pieces count as one line") {
  Tail tail;
  tail.add({.body = std::string(900, 'a'), .end = {}});
  tail.add({.body = std::string(900, 'b'), .end = "\n", .continues = true});
  tail.add({.body = "next", .end = "\n"});
  const auto lines = tail.lines();
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == std::string(900, 'a') + std::string(100, 'b') + "...");
}

TEST_CASE("the tail shows neither terminal sequences nor empty ends") {
  Tail tail;
  tail.add({.body = "", .end = "\n"});
  tail.add({.body = "\x1b[1;31mred\x1b[0m\a\ttext", .end = "\n"});
  tail.add({.body = "", .end = "\n"});
  tail.add({.body = "end", .end = "\n"});
  tail.add({.body = "", .end = "\n"});
  CHECK(tail.lines() == Lines{"red\ttext", "", "end"});
}
