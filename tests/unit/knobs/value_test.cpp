// SPDX-License-Identifier: Apache-2.0
#include "base/knobs/value.hpp"

#include <catch2/catch.hpp>

using namespace horo;  // NOLINT(google-build-using-namespace): a test of this namespace

namespace {

const KnobRow& row(std::string_view key) {
  const int index = knob_index(key);
  REQUIRE(index >= 0);
  return knob_rows()[static_cast<std::size_t>(index)];
}

/// Converts `text` to a value and back, or returns "!" and the reason for the refusal.
std::string reread(std::string_view key, std::string_view text, const Spelling& spelling = {}) {
  const auto value = parse_knob(row(key), spelling, text);
  return value ? format_knob(row(key), *value) : "!" + value.error().message;
}

}  // namespace

TEST_CASE("sizes are read with and without units") {
  CHECK(reread("fusion.threshold", "64MiB") == "64MiB");
  CHECK(reread("fusion.threshold", "67108864") == "64MiB");
  CHECK(reread("fusion.threshold", "64M") == "64MiB");
  CHECK(reread("fusion.threshold", " 0.5 GiB ") == "512MiB");
  CHECK(reread("fusion.threshold", "1000") == "1000B");
  CHECK(reread("fusion.threshold", "0") == "0");
  CHECK(reread("fusion.threshold", "64", {.scale = 1048576}) == "64MiB");
  CHECK(reread("fusion.threshold", "64KiB", {.scale = 1048576}) == "64KiB");
}

TEST_CASE("invalid sizes and sizes out of range are refused") {
  const std::string reason = "!a size (64MiB, 64M or bytes) from 0 to 1GiB";
  for (const auto* text : {"", "big", "-1", "1025MiB", "1e300", "nan", "inf", "64MiB/s", "64 ms"}) {
    CAPTURE(text);
    CHECK(reread("fusion.threshold", text) == reason);
  }
}

TEST_CASE("times are read with units, or in the unit of their row") {
  CHECK(reread("cycle.time", "1ms") == "1ms");
  CHECK(reread("cycle.time", "0.5") == "500us");
  CHECK(reread("wake.delay", "50") == "50us");
  CHECK(reread("start.timeout", "2min") == "2min");
  CHECK(reread("start.timeout", "90") == "90s");
  CHECK(reread("start.timeout", "0") == "30s");
  CHECK(reread("start.timeout", "25h") == "!a time (1ms, 2s or a number of s) from 1ms to 24h");
  CHECK(reread("cycle.time", "2s") == "!a time (1ms, 2s or a number of ms) from 0 to 1s");
}

TEST_CASE("an optional time accepts a word that means no limit") {
  CHECK(reread("spin.time", "auto") == "auto");
  CHECK(reread("spin.time", "0") == "0");
  CHECK(reread("stall.shutdown.time", "0") == "never");
  CHECK(reread("timeout", "soon") ==
        "!a time (1ms, 2s or a number of s) from 1ms to 2400h, or 'never'");
}

TEST_CASE("switches and words are read in any case") {
  CHECK(reread("autotune", "Yes") == "true");
  CHECK(reread("autotune", "0") == "false");
  CHECK(reread("log.timestamp", "1", {.inverted = true}) == "false");
  CHECK(reread("autotune", "maybe") == "!true or false");
  CHECK(reread("log.level", "WARNING") == "warning");
  CHECK(reread("log.level", "loud") == "!one of: trace, debug, info, warning, error, fatal");
}

TEST_CASE("whole numbers with a fraction, several signs or garbage are refused") {
  CHECK(reread("shm.ring", "16") == "16");
  for (const auto* text : {"1", "65", "8.5", "0x10", "8 chunks", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK(reread("shm.ring", text) == "!a whole number from 2 to 64");
  }
  CHECK(reread("autotune.gaussian.process.noise", "1.5") == "!a number from 0 to 1");
}

TEST_CASE("a cache smaller than the default is ignored under Horovod's names") {
  const Spelling horovod = row("cache.capacity").text->variable;
  CHECK(reread("cache.capacity", "0", horovod) == "8192");
  CHECK(reread("cache.capacity", "1024", horovod) == "8192");
  CHECK(reread("cache.capacity", "20000", horovod) == "20000");
  CHECK(reread("cache.capacity", "1024") == "1024");
}

TEST_CASE("values are written for programs that expect Horovod's units") {
  const auto as = [](std::string_view key, std::string_view text) {
    const auto value = parse_knob(row(key), {}, text);
    REQUIRE(value);
    return format_for(row(key), row(key).text->variable, *value);
  };
  CHECK(as("fusion.threshold", "1GiB") == "1073741824");
  CHECK(as("cycle.time", "1500us") == "1.5");
  CHECK(as("log.timestamp", "false") == "1");
  CHECK(as("log.level", "debug") == "DEBUG");
  CHECK(as("stall.shutdown.time", "never") == "0");
  CHECK(as("stall.warning.time", "2min") == "120");
  CHECK(as("timeline.filename", "/tmp/t.json") == "/tmp/t.json");
}
