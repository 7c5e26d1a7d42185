// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>

#include <catch2/catch.hpp>

#include "base/version.hpp"
#include "launcher/protocol/protocol.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace horo::launcher::protocol;

TEST_CASE("the output of a login shell before the hello is dropped") {
  std::string hello;
  REQUIRE(encode(Hello::ours(), hello));
  const auto greeting = std::string("welcome\n") + '\0' + "\1\1HOR and \xff\n";
  for (std::size_t piece = 1; piece < 40; ++piece) {
    INFO("pieces of " << piece);
    const auto stream = greeting + hello + "more";
    HelloFinder finder;
    std::size_t at = 0;
    while (at < stream.size() && !finder.pass(std::string_view(stream).substr(at, piece)))
      at += piece;
    at = std::min(at + piece, stream.size());
    CHECK(std::string(finder.rest()) + stream.substr(at) == hello + "more");
  }
}

TEST_CASE("hellos of other builds are refused, naming both versions") {
  CHECK(check_hello(Hello::ours(), "horo-agent"));
  auto other = Hello::ours();
  other.version_code += 100;
  other.version = "9.8.7";
  const auto refused = check_hello(other, "horo-agent on host 'n'");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::version_mismatch);
  CHECK_THAT(refused.error().message, Catch::Contains("9.8.7") &&
                                          Catch::Contains(std::string(version())) &&
                                          Catch::Contains("host 'n'"));
  other = Hello::ours();
  other.protocol = 4;  // As of two builds of one version.
  CHECK_THAT(check_hello(other, "horo-agent").error().message,
             Catch::Contains("with protocol 4") &&
                 Catch::Contains(fmt::format("with protocol {}", protocol::kVersion)));
  other = Hello::ours();
  other.magic = 1;
  CHECK(check_hello(other, "horo-agent").error().code == Errc::protocol);
}
