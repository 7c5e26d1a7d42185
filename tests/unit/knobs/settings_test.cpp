// SPDX-License-Identifier: Apache-2.0
#include "base/knobs/settings.hpp"

#include <map>

#include <catch2/catch.hpp>

#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"

using namespace horo;  // NOLINT(google-build-using-namespace): a test of this namespace
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

namespace {

std::function<const char*(const char*)> lookup_in(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

std::string refusal(const Sources& sources) {
  const auto settings = Settings::resolve(sources);
  REQUIRE_FALSE(settings);
  CHECK(settings.error().code == Errc::invalid_argument);
  return settings.error().message;
}

}  // namespace

TEST_CASE("without sources every knob has its default") {
  const Settings settings;
  CHECK(settings.get(knobs::kFusionThreshold) == Bytes{64U << 20U});
  CHECK(settings.get(knobs::kCycleTime) == 0ms);
  CHECK(settings.get(knobs::kWakeDelay) == 50us);
  CHECK(settings.get(knobs::kSpinTime) == std::nullopt);
  CHECK(settings.get(knobs::kShmRing) == 4);
  CHECK(settings.get(knobs::kLogLevel) == log::Level::warning);
  CHECK(settings.get(knobs::kTag) == TagMode::automatic);
  CHECK(settings.get(knobs::kStallCheck));
  CHECK(settings.get(knobs::kAutotuneNoise) == 0.8);
  CHECK(settings.get(knobs::kOutputFilename).empty());
  CHECK_FALSE(settings.is_set("fusion.threshold"));
  CHECK(settings.origin("fusion.threshold").text() == "default");
  CHECK(settings.exported().empty());
}

TEST_CASE("priority rises from file to Horovod's variable, our variable and flag") {
  Sources sources{.config = {{"fusion.threshold", "1MiB", "c.yaml:2:3"}}};
  auto settings = Settings::resolve(sources);
  REQUIRE(settings);
  CHECK(settings->get(knobs::kFusionThreshold) == Bytes{1U << 20U});
  CHECK(settings->origin("fusion.threshold").text() == "config c.yaml:2:3");

  sources.environment = lookup_in({{"HOROVOD_FUSION_THRESHOLD", "2097152"}});
  settings = Settings::resolve(sources);
  REQUIRE(settings);
  CHECK(settings->get(knobs::kFusionThreshold) == Bytes{2U << 20U});
  CHECK(settings->origin("fusion.threshold").text() == "environment HOROVOD_FUSION_THRESHOLD");

  sources.environment =
      lookup_in({{"HOROVOD_FUSION_THRESHOLD", "2097152"}, {"HORO_FUSION_THRESHOLD", "3MiB"}});
  settings = Settings::resolve(sources);
  REQUIRE(settings);
  CHECK(settings->get(knobs::kFusionThreshold) == Bytes{3U << 20U});
  CHECK(settings->origin("fusion.threshold").text() == "environment HORO_FUSION_THRESHOLD");

  sources.flags = {{"fusion-threshold", "5MiB", ""}, {"fusion-threshold-mb", "4", ""}};
  settings = Settings::resolve(sources);
  REQUIRE(settings);
  CHECK(settings->get(knobs::kFusionThreshold) == Bytes{4U << 20U});
  CHECK(settings->origin("fusion.threshold").text() == "flag --fusion-threshold-mb");
}

TEST_CASE("with --horovod the file has priority over the environment, but not over the flag") {
  Sources sources{.environment = lookup_in({{"HORO_CYCLE_TIME", "2"}}),
                  .config = {{"params.cycle_time_ms", "3", "c.yaml:1:1"}},
                  .config_beats_environment = true};
  auto settings = Settings::resolve(sources);
  REQUIRE(settings);
  CHECK(settings->get(knobs::kCycleTime) == 3ms);
  sources.flags = {{"cycle-time-ms", "4", ""}};
  settings = Settings::resolve(sources);
  REQUIRE(settings);
  CHECK(settings->get(knobs::kCycleTime) == 4ms);
}

TEST_CASE("the error for a wrong value is one line with key, value, origin and allowed values") {
  CHECK(
      refusal({.environment = lookup_in({{"HORO_FUSION_THRESHOLD", "2GiB"}})}) ==
      "fusion.threshold: '2GiB' (environment HORO_FUSION_THRESHOLD) must be a size (64MiB, 64M or "
      "bytes) from 0 to 1GiB");
  CHECK(refusal({.config = {{"shm.ring", "x", "c.yaml:4:9"}}}) ==
        "shm.ring: 'x' (config c.yaml:4:9) must be a whole number from 2 to 64");
  CHECK(refusal({.flags = {{"log-level", "loud", ""}}}) ==
        "log.level: 'loud' (flag --log-level) must be one of: trace, debug, info, warning, error, "
        "fatal");
}

TEST_CASE("an unknown key is an error that names the nearest known one") {
  CHECK(refusal({.config = {{"fusion.treshold", "1", "c.yaml:7:3"}}}) ==
        "c.yaml:7:3: unknown key 'fusion.treshold'; did you mean 'fusion.threshold'?");
}

TEST_CASE("an empty variable counts as unset") {
  const auto settings = Settings::from_environment(lookup_in({{"HORO_SHM_RING", ""}}));
  REQUIRE(settings);
  CHECK_FALSE(settings->is_set("shm.ring"));
}

TEST_CASE("a 0 below the range counts as unset in Horovod's variables and is an error elsewhere") {
  const auto settings = Settings::from_environment(lookup_in({{"HOROVOD_START_TIMEOUT", " 0"},
                                                              {"HOROVOD_CYCLE_TIME", "0"},
                                                              {"HOROVOD_CACHE_CAPACITY", "0"}}));
  REQUIRE(settings);
  CHECK_FALSE(settings->is_set("start.timeout"));
  CHECK(settings->get(knobs::kStartTimeout) == 30s);
  CHECK(settings->is_set("cycle.time"));
  CHECK(settings->is_set("cache.capacity"));
  REQUIRE(settings->ignored().size() == 1);
  CHECK_THAT(settings->ignored().front(), Catch::Contains("HOROVOD_START_TIMEOUT"));
  refusal({.environment = lookup_in({{"HOROVOD_START_TIMEOUT", "-1"}})});
  refusal({.environment = lookup_in({{"HORO_START_TIMEOUT", "0"}})});
  CHECK(refusal({.flags = {{"start-timeout", "0", ""}}}) ==
        "start.timeout: '0' (flag --start-timeout) must be a time (1ms, 2s or a number of s) from "
        "1ms to 24h");
}

TEST_CASE("ranks get their knobs that were set, under both names, and read the same values") {
  const auto settings = Settings::resolve({.flags = {{"cycle-time", "2ms", ""},
                                                     {"no-stall-check", "true", ""},
                                                     {"grace", "1s", ""},
                                                     {"tag", "off", ""}}});
  REQUIRE(settings);
  const auto exported = settings->exported();
  CHECK(exported == Environment{{"HORO_CYCLE_TIME", "2ms"},
                                {"HOROVOD_CYCLE_TIME", "2"},
                                {"HORO_STALL_CHECK", "false"},
                                {"HOROVOD_STALL_CHECK_DISABLE", "1"}});
  const auto there = Settings::from_environment(lookup_in({exported.begin(), exported.end()}));
  REQUIRE(there);
  CHECK(there->get(knobs::kCycleTime) == 2ms);
  CHECK_FALSE(there->get(knobs::kStallCheck));
}

TEST_CASE("explain names every knob with its value and origin") {
  const auto settings = Settings::from_environment(lookup_in({{"HOROVOD_LOG_LEVEL", "INFO"}}));
  REQUIRE(settings);
  const auto all = settings->explain();
  REQUIRE(all.size() == knob_rows().size());
  CHECK(all.front().key == "fusion.threshold");
  CHECK(all.front().value == "64MiB");
  const auto& level = all.at(static_cast<std::size_t>(knob_index("log.level")));
  CHECK(level.value == "info");
  CHECK(level.origin.text() == "environment HOROVOD_LOG_LEVEL");
}
