// SPDX-License-Identifier: Apache-2.0
#include "discovery/host.hpp"

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::discovery;

TEST_CASE("a host entry is a name and its slots, one when none are written") {
  CHECK(parse_host("node7:4").value() == Host{"node7", 4});
  CHECK(parse_host("node7").value() == Host{"node7", 1});
  CHECK(parse_host("rack-1.node_2:16").value() == Host{"rack-1.node_2", 16});
  CHECK(parse_host("10.0.0.1:2").value() == Host{"10.0.0.1", 2});
}

TEST_CASE("an IPv6 address stands in brackets") {
  CHECK(parse_host("[::1]:2").value() == Host{"::1", 2});
  CHECK(parse_host("[fe80::1%eth0]").value() == Host{"fe80::1%eth0", 1});
}

TEST_CASE("a wrong host entry is refused with its text and the remedy") {
  const auto [entry, part] = GENERATE(table<std::string, std::string>({
      {"", "empty"},
      {"a:", "slots in 'a:' must be a whole number from 1"},
      {"a:0", "slots in 'a:0'"},
      {"a:-1", "slots in 'a:-1'"},
      {"a:x", "slots in 'a:x'"},
      {"a:2x", "slots in 'a:2x'"},
      {"a: 2", "slots in 'a: 2'"},
      {"a:99999999999", "from 1 to 1000000"},
      {":2", "must be a name"},
      {"-oProxyCommand=x", "must be a name"},
      {"-a:2", "must be a name"},
      {"a b:2", "must be a name"},
      {"a$:2", "must be a name"},
      {"::1", "brackets"},
      {"a:2:3", "brackets"},
      {"[::1:2", "no closing bracket"},
      {"[]:2", "not an IPv6 address"},
      {"[host]:2", "not an IPv6 address"},
      {"[::1]2", "must be :slots"},
  }));
  INFO(entry);
  const auto host = parse_host(entry);
  REQUIRE(!host);
  CHECK(host.error().code == Errc::invalid_argument);
  CHECK_THAT(host.error().message, Catch::Contains(part));
}

TEST_CASE("a host named twice is one host with the slots of both, at its first place") {
  HostSet hosts({{"a", 2}, {"b", 1}, {"a", 3}});
  CHECK(hosts.hosts() == std::vector<Host>{{"a", 5}, {"b", 1}});
  CHECK(hosts.slots() == 6);
  CHECK(describe(hosts) == "a:5, b:1");
}

TEST_CASE("slots of a host named thousands of times stay a number") {
  HostSet hosts;
  for (int i = 0; i < 5000; ++i) hosts.add({"a", horo::discovery::kMaxSlots});
  CHECK(hosts.slots() == horo::discovery::kMaxSlots);
}
