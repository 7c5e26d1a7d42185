// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/remote_agent.hpp"

#include <array>
#include <cstdio>

#include <catch2/catch.hpp>

using namespace horo::launcher;

namespace {

std::string told_by(const std::string& line) {
  std::string text;
  auto* pipe = popen(("{ " + line + "; } 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 256> block{};
  while (const auto count = std::fread(block.data(), 1, block.size(), pipe))
    text.append(block.data(), count);
  pclose(pipe);
  return text;
}

}  // namespace

TEST_CASE("the agent's path reaches the other host unchanged") {
  CHECK(told_by("(" + remote_command_line("/bin/pwd") + ")").starts_with("/"));
  const auto lacking = told_by("(" + remote_command_line("/no where/it's $HOME `x`") + ")");
  CHECK(lacking.starts_with(
      "there is no /no where/it's $HOME `x` there, and no horo-agent in PATH="));
}

TEST_CASE("a tail of standard error keeps the last lines, joined to one") {
  OutputTail tail;
  CHECK(tail.text().empty());
  tail.add("\none\r\n\ntwo");
  CHECK(tail.text() == ": one; two");
  tail.add(std::string(5000, 'x') + "\nend\n");
  CHECK(tail.text().size() < 3000);
  CHECK(tail.text().ends_with("x; end"));
}
