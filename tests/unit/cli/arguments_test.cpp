// SPDX-License-Identifier: Apache-2.0
#include "base/cli/arguments.hpp"

#include <catch2/catch.hpp>

using namespace horo;  // NOLINT(google-build-using-namespace): a test of this namespace

namespace {

Result<cli::Arguments> parse(const std::vector<const char*>& words) {
  return cli::parse_arguments(*cli::find_command("run"), words);
}

/// "name=value name=value | rest rest", or "!" and the error.
std::string told(const std::vector<const char*>& words) {
  const auto arguments = parse(words);
  if (!arguments) return "!" + arguments.error().message;
  std::string text;
  for (const auto& option : arguments->options) text += option.name + "=" + option.value + " ";
  text += "|";
  for (const auto& word : arguments->rest) text += " " + word;
  return text;
}

}  // namespace

TEST_CASE("options end at the first positional argument and the rest is unchanged") {
  CHECK(told({"-np", "2", "python", "t.py", "--np", "7", "--verbose"}) ==
        "np=2 | python t.py --np 7 --verbose");
  CHECK(told({"python", "-np", "2"}) == "| python -np 2");
  CHECK(told({"-np", "1", "-"}) == "np=1 | -");
}

TEST_CASE("one leading -- is dropped, a later one belongs to the command") {
  CHECK(told({"-np", "2", "--", "cmd", "--", "x"}) == "np=2 | cmd -- x");
  CHECK(told({"--", "--odd-name"}) == "| --odd-name");
}

TEST_CASE("single-dash words are long options") {
  CHECK(told({"-np=2", "x"}) == "np=2 | x");
  CHECK(told({"-n", "2", "x"}) == "num-proc=2 | x");
  CHECK(told({"-hostfile", "f", "x"}) == "hostfile=f | x");
  CHECK(told({"-H", "a:2,b:2", "x"}) == "hosts=a:2,b:2 | x");
  CHECK(told({"-prefix-timestamp", "x"}) == "prefix-timestamp=true | x");
  CHECK(told({"-cb"}) == "cb=true |");
  CHECK(told({"-np2", "x"}) == "!unknown option '-np2'; write '-np 2'");
}

TEST_CASE("an unambiguous beginning of a long option is enough") {
  CHECK(told({"--num-p", "4", "x"}) == "num-proc=4 | x");
  CHECK(told({"--fusion-threshold", "1", "x"}) == "fusion-threshold=1 | x");
  CHECK(told({"--hostf", "f", "x"}) == "hostfile=f | x");
  CHECK(told({"--explain"}) == "explain-config=true |");
  CHECK(told({"--host", "f", "x"}) ==
        "!option '--host' could be --hosts, --hostfile, --host-discovery-script");
}

TEST_CASE("switches have a no- form and take a value only after '='") {
  CHECK(told({"--autotune", "x"}) == "autotune=true | x");
  CHECK(told({"--no-autotune", "x"}) == "no-autotune=true | x");
  CHECK(told({"--autotune=off", "x"}) == "autotune=off | x");
  CHECK(told({"--dry-run=1", "x"}) == "!option '--dry-run' takes no value");
}

TEST_CASE("a value may be a negative number but not an option") {
  CHECK(told({"-np", "-1", "x"}) == "np=-1 | x");
  CHECK(told({"-np", "--verbose", "x"}) == "!option '--np' needs a value: N");
  CHECK(told({"--prefix"}) == "!option '--prefix' needs a value: TEXT");
  CHECK(told({"--prefix=--", "x"}) == "prefix=-- | x");
  CHECK(told({"--prefix=", "x"}) == "prefix= | x");
}

TEST_CASE("an unknown option is named with the nearest known one") {
  CHECK(told({"--fusion-treshold", "1"}) ==
        "!unknown option '--fusion-treshold'; did you mean '--fusion-threshold'?");
  CHECK(told({"--zzzzzz"}) == "!unknown option '--zzzzzz'");
  CHECK(told({"-q"}) == "!unknown option '-q'");
  CHECK(told({"--nproc_per_node", "2", "x"}) ==
        "!unknown option '--nproc_per_node'; it is torchrun's; write '-np N', or '--ranks-per-host "
        "N' with hosts");
  CHECK(told({"--machinefile", "x"}) ==
        "!unknown option '--machinefile'; it is mpirun's; write '--hostfile FILE'");
}

TEST_CASE("a range may be two words, as horovodrun takes it, or one") {
  CHECK(told({"--blacklist-cooldown-range", "10", "100", "x"}) ==
        "blacklist-cooldown-range=10,100 | x");
  CHECK(told({"--blacklist-cooldown-range", "10,100", "5"}) ==
        "blacklist-cooldown-range=10,100 | 5");
  CHECK(told({"--blacklist-cooldown-range", "10", "x"}) == "blacklist-cooldown-range=10 | x");
  CHECK(told({"--reset-limit", "10", "100"}) == "reset-limit=10 | 100");
}

TEST_CASE("the last of several equal options has priority") {
  const auto arguments = parse({"-np", "2", "--num-proc", "3", "x"});
  REQUIRE(arguments);
  REQUIRE(arguments->find("num-proc") != nullptr);
  CHECK(arguments->find("num-proc")->value == "3");
  CHECK(arguments->find("hosts") == nullptr);
}

TEST_CASE("a command without positional arguments refuses them") {
  const std::vector<const char*> words{"--json", "x"};
  const auto arguments = cli::parse_arguments(*cli::find_command("check-build"), words);
  REQUIRE_FALSE(arguments);
  CHECK(arguments.error().message == "unexpected argument 'x'");
}
