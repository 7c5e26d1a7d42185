// SPDX-License-Identifier: Apache-2.0
#include "discovery/repeated_hosts.hpp"

#include <catch2/catch.hpp>

#include "base/board_header.hpp"

using namespace horo;
using discovery::RepeatLimits;

namespace {

discovery::HostSet printed(const std::string& name, int lines, int slots = 1) {
  discovery::HostSet hosts;
  for (int i = 0; i < lines; ++i) hosts.add({.name = name, .slots = slots});
  return hosts;
}

std::string refusal(const discovery::HostSet& hosts, const RepeatLimits& limits) {
  const auto checked = check_repeated_hosts(hosts, limits);
  return checked ? "not refused" : checked.error().message;
}

}  // namespace

TEST_CASE("lines that give a host more slots than a host may have are refused") {
  CHECK(refusal(printed("a", kMaxLocalRanks), {}) == "not refused");
  const auto text = refusal(printed("a", 1'000'000), {.ranks_are_limited = true});
  CHECK_THAT(text, Catch::Contains("host 'a' is on 1000000 lines"));
  CHECK_THAT(text, Catch::Contains("as a:SLOTS"));
  CHECK_THAT(refusal(printed("a", 600, 2), {}), Catch::Contains("600 lines, which give it 1200"));
}

TEST_CASE("lines that give this machine more slots than cores need a limit of ranks") {
  const auto four = printed("localhost", 4);
  CHECK(refusal(four, {.own_cores = 4}) == "not refused");
  CHECK(refusal(four, {.own_cores = 2, .ranks = 4}) == "not refused");
  CHECK(refusal(four, {.own_cores = 2, .ranks_are_limited = true}) == "not refused");
  CHECK_THAT(refusal(four, {.own_cores = 2, .ranks = 3}),
             Catch::Contains("host 'localhost' is on 4 lines, which give it 4 slots, but this "
                             "machine has 2 cores; print it once, as localhost:4"));
}

TEST_CASE("one line gives a host all slots that it names") {
  CHECK(refusal(printed("localhost", 1, 2000), {}) == "not refused");
}
