// SPDX-License-Identifier: Apache-2.0
#include "base/kv/address.hpp"

#include <string>

#include <catch2/catch.hpp>

using horo::Errc;
using horo::kv::Address;
using horo::kv::parse_address;

TEST_CASE("names, IPv4 and bracketed IPv6 addresses are parsed and written unchanged") {
  for (const std::string text : {"node1:4711", "10.0.0.1:1", "[::1]:65535", "[fe80::1%eth0]:80"}) {
    const auto address = parse_address(text);
    REQUIRE(address);
    CHECK(to_string(*address) == text);
  }
  CHECK(*parse_address("[::1]:80") == Address{"::1", 80});
  CHECK(parse_address("[node1]:80")->host == "node1");
}

TEST_CASE("an invalid address is refused with its text") {
  const std::string null_inside("a\0b:1", 5);
  for (const std::string& text :
       {std::string(""), std::string("node1"), std::string(":80"), std::string("node1:"),
        std::string("node1:0"), std::string("node1:65536"), std::string("node1:-1"),
        std::string("node1:80x"), std::string("node1: 80"), std::string("::1:80"),
        std::string("[::1:80"), std::string("[]:80"), std::string("[::1]80"), null_inside}) {
    INFO(text);
    const auto address = parse_address(text);
    REQUIRE_FALSE(address);
    CHECK(address.error().code == Errc::invalid_argument);
    CHECK(address.error().message.find("'" + text + "'") != std::string::npos);
  }
}
