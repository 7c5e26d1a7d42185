// SPDX-License-Identifier: Apache-2.0
#include "apps/common/config_file.hpp"

#include <catch2/catch.hpp>

using namespace horo;  // NOLINT(google-build-using-namespace): a test of this namespace

namespace {

/// The assignments as "name=value@line:column ...", or "!" and the error.
std::string told(const std::string& text) {
  const auto config = apps::parse_config(text, "c");
  if (!config) return "!" + config.error().message;
  std::string result;
  for (const auto& given : *config)
    result += given.name + "=" + given.value + "@" + given.place.substr(2) + " ";
  return result;
}

}  // namespace

TEST_CASE("sections become dotted names with the place of the value") {
  CHECK(told("fusion:\n  threshold: 1MiB\ncycle.time: 2\n") ==
        "fusion.threshold=1MiB@2:14 cycle.time=2@3:13 ");
  CHECK(told("log: {level: \"info\"}") == "log.level=info@1:14 ");
}

TEST_CASE("an unknown key has its own place, for the message") {
  CHECK(told("fusion:\n  treshold: 1MiB\n") == "fusion.treshold=1MiB@2:3 ");
}

TEST_CASE("an empty config file, section or value sets no knob") {
  CHECK(told("").empty());
  CHECK(told("# only a comment\n").empty());
  CHECK(told("fusion:\n").empty());
  CHECK(told("fusion: {threshold: null}").empty());
}

TEST_CASE("text that is not a map of maps and values is refused with its place") {
  CHECK(told("- a\n- b\n") == "!c:1:1: must hold sections with keys and values");
  CHECK(told("text") == "!c:1:1: must hold sections with keys and values");
  CHECK(told("shm:\n  ring: [1, 2]\n") == "!c:2:9: key 'shm.ring' must have a single value");
  CHECK(told("[a]: 1\n") == "!c:1:1: a key must be a word");
  CHECK(told("grace: 1\ngrace: 2\n") == "!c:2:1: key 'grace' is given twice");
  CHECK(told("a:\n  b: 1\n c: 2\n").starts_with("!c:3:2: "));
  CHECK(told("a: \"open").starts_with("!c:1:"));
  CHECK(told(std::string(100000, '[')).starts_with("!c:"));
}

TEST_CASE("the caller decides about an unknown key, whatever its value is") {
  CHECK(told("later: [1, 2]\n") == "later=@1:1 ");
  CHECK(told("later: 3\n") == "later=3@1:1 ");
}

TEST_CASE("the expansion of nested aliases is bounded") {
  std::string text = "a0: &a0 {x: 1}\n";
  for (int level = 1; level < 8; ++level) {
    text += fmt::format("a{}: &a{} {{", level, level);
    for (int i = 0; i < 100; ++i) text += fmt::format("k{}: *a{}, ", i, level - 1);
    text += "}\n";
  }
  CHECK(told(text).find("more than 10000 keys") != std::string::npos);
}

TEST_CASE("the error for a file that cannot be read gives the reason") {
  const auto missing = apps::read_config_file("no/such/file.yaml");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == Errc::not_found);
  CHECK(missing.error().message == "config file 'no/such/file.yaml': No such file or directory");
  const auto directory = apps::read_config_file("/");
  REQUIRE_FALSE(directory);
  CHECK(directory.error().message == "config file '/': Is a directory");
  const auto endless = apps::read_config_file("/dev/zero");
  REQUIRE_FALSE(endless);
  CHECK(endless.error().message == "config file '/dev/zero' is longer than 1048576 bytes");
}
