// SPDX-License-Identifier: Apache-2.0
#include "base/knobs/settings.hpp"

#include <map>

#include <catch2/catch.hpp>

#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/knobs/value.hpp"

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
                  .like_horovodrun = true};
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

TEST_CASE("0 means the default where Horovod takes it for unset or off") {
  for (const auto* start : {"HORO_START_TIMEOUT", "HOROVOD_START_TIMEOUT"}) {
    const auto settings = Settings::from_environment(
        lookup_in({{start, " 0"}, {"HOROVOD_CYCLE_TIME", "0"}, {"HOROVOD_CACHE_CAPACITY", "0"}}));
    REQUIRE(settings);
    CHECK(settings->get(knobs::kStartTimeout) == 30s);
    CHECK(settings->get(knobs::kCacheCapacity) == 8192);
    CHECK(settings->warnings().empty());
  }
  const auto flags =
      Settings::resolve({.flags = {{"start-timeout", "0", ""}, {"cache-capacity", "0", ""}}});
  REQUIRE(flags);
  CHECK(flags->get(knobs::kStartTimeout) == 30s);
  CHECK(flags->get(knobs::kCacheCapacity) == 8192);
  refusal({.environment = lookup_in({{"HOROVOD_START_TIMEOUT", "-1"}})});
}

TEST_CASE("a value above the range is lowered with a warning under a name of Horovod's only") {
  const auto settings =
      Settings::resolve({.environment = lookup_in({{"HOROVOD_CYCLE_TIME", "2500"}}),
                         .config = {{"params.fusion_threshold_mb", "4096", "c.yaml:1:1"}},
                         .flags = {{"fusion-threshold-mb", "2048", ""}}});
  REQUIRE(settings);
  CHECK(settings->get(knobs::kFusionThreshold) == Bytes{1U << 30U});
  CHECK(settings->get(knobs::kCycleTime) == 1s);
  CHECK(settings->warnings() ==
        std::vector<KnobWarning>{
            {"cycle.time",
             "cycle.time: '2500' (environment HOROVOD_CYCLE_TIME) is above the largest value, 1s, "
             "which is used"},
            {"fusion.threshold",
             "fusion.threshold: '2048' (flag --fusion-threshold-mb) is above the largest value, "
             "1GiB, which is used"}});
  refusal({.environment = lookup_in({{"HORO_CYCLE_TIME", "2500"}})});
}

TEST_CASE("like horovodrun, flags named as in Horovod take Horovod's values") {
  const auto capacity = [](const char* text, bool like_horovodrun) {
    const auto settings = Settings::resolve(
        {.flags = {{"cache-capacity", text, ""}}, .like_horovodrun = like_horovodrun});
    return settings ? settings->get(knobs::kCacheCapacity) : -1;
  };
  CHECK(capacity("1", true) == 8192);
  CHECK(capacity("99999999", true) == 1048576);
  CHECK(capacity("1", false) == -1);
  CHECK(capacity("99999999", false) == -1);
}

TEST_CASE("a switch takes any number under a name of Horovod's") {
  const auto hierarchical = [](const char* variable, const char* text) {
    const auto settings = Settings::from_environment(lookup_in({{variable, text}}));
    return settings ? static_cast<int>(settings->get(knobs::kHierarchicalAllreduce)) : -1;
  };
  CHECK(hierarchical("HOROVOD_HIERARCHICAL_ALLREDUCE", "2") == 1);
  CHECK(hierarchical("HOROVOD_HIERARCHICAL_ALLREDUCE", "-1") == 0);
  CHECK(hierarchical("HOROVOD_HIERARCHICAL_ALLREDUCE", "x") == -1);
  CHECK(hierarchical("HORO_HIERARCHICAL_ALLREDUCE", "2") == -1);
}

TEST_CASE("a knob that nothing reads is a warning, whatever way it was set") {
  const auto reason = " has no effect: " + std::string(knobs::kHierarchicalAllgather.text.inert);
  const auto told = [](const Sources& sources) {
    const auto settings = Settings::resolve(sources);
    REQUIRE(settings);
    REQUIRE(settings->warnings().size() == 1);
    CHECK(settings->warnings().front().subject == "hierarchical.allgather");
    return settings->warnings().front().text;
  };
  CHECK(told({.flags = {{"hierarchical-allgather", "false", ""}}}) ==
        std::string("hierarchical.allgather (flag --hierarchical-allgather)") + reason);
  CHECK(told({.environment = lookup_in({{"HORO_HIERARCHICAL_ALLGATHER", "off"}})}) ==
        std::string("hierarchical.allgather (environment HORO_HIERARCHICAL_ALLGATHER)") + reason);
  CHECK(told({.environment = lookup_in({{"HOROVOD_HIERARCHICAL_ALLGATHER", "0"}})}) ==
        std::string("hierarchical.allgather (environment HOROVOD_HIERARCHICAL_ALLGATHER)") +
            reason);
  CHECK(told({.config = {{"params.hierarchical_allgather", "false", "c.yaml:2:3"}}}) ==
        std::string("hierarchical.allgather (config c.yaml:2:3)") + reason);
}

TEST_CASE("every knob without a reader warns, unless a switch asks for what happens anyway") {
  for (const auto& row : knob_rows()) {
    CAPTURE(row.text->key);
    const bool is_switch = row.kind == KnobKind::boolean;
    const auto fallback = format_fallback(row);
    const auto* const other = fallback == "true" ? "false" : "true";
    const auto settings = Settings::resolve(
        {.flags = {{flag_name(row.text->key), is_switch ? other : fallback, ""}}});
    REQUIRE(settings);
    CHECK(settings->warnings().size() == (row.text->inert.empty() ? 0 : 1));
    const auto same = Settings::resolve({.flags = {{flag_name(row.text->key), fallback, ""}}});
    REQUIRE(same);
    if (is_switch) CHECK(same->warnings().empty());
  }
}

TEST_CASE("like horovodrun, an unknown key of the file is a warning") {
  const auto settings = Settings::resolve(
      {.config = {{"fusion.treshold", "1", "c.yaml:7:3"}}, .like_horovodrun = true});
  REQUIRE(settings);
  CHECK(settings->warnings() ==
        std::vector<KnobWarning>{{"",
                                  "c.yaml:7:3: the key 'fusion.treshold' is unknown and has no "
                                  "effect; did you mean 'fusion.threshold'?"}});
}

TEST_CASE("the cores of threads are a list of numbers") {
  CHECK(Settings::resolve({.flags = {{"thread-affinity", "0,12,3", ""}}}));
  CHECK(Settings::resolve({.flags = {{"thread-affinity", "0, 12", ""}}}));
  for (const auto* wrong : {"x", "1,", ",1", "1;2", "-1", "1 2", "1 ,2", "1, ", "12345"}) {
    CHECK(
        refusal({.flags = {{"thread-affinity", wrong, ""}}}) ==
        fmt::format("thread.affinity: '{}' (flag --thread-affinity) must be core numbers separated "
                    "by commas",
                    wrong));
  }
  CHECK(count_numbers("") == 0);
  CHECK(count_numbers("4,15,6") == 3);
  CHECK(number_at("4,15,6", 0) == 4);
  CHECK(number_at("4,15,6", 1) == 15);
  CHECK(number_at("4,15,6", 2) == 6);
  CHECK(number_at("4, 15", 1) == 15);
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
