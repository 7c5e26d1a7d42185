// SPDX-License-Identifier: Apache-2.0
#include "base/knobs/knob_table.hpp"

#include <set>

#include <catch2/catch.hpp>

#include "base/knobs/value.hpp"

using namespace horo;  // NOLINT(google-build-using-namespace): a test of this namespace

TEST_CASE("a knob's flag and variable follow from its key") {
  CHECK(flag_name("fusion.threshold") == "fusion-threshold");
  CHECK(variable_name("fusion.threshold") == "HORO_FUSION_THRESHOLD");
  const int index = knob_index("fusion.threshold");
  REQUIRE(index >= 0);
  CHECK(match_flag("fusion-threshold").index == index);
  CHECK(match_config("fusion.threshold").index == index);
  CHECK(match_config("fusion_threshold").index == index);
}

TEST_CASE("no two knobs share a key, a flag, a variable or a config path") {
  std::set<std::string> flags;
  std::set<std::string> variables;
  std::set<std::string> paths;
  for (const auto& row : knob_rows()) {
    const KnobText& text = *row.text;
    CAPTURE(text.key);
    CHECK(flags.insert(flag_name(text.key)).second);
    CHECK(variables.insert(variable_name(text.key)).second);
    CHECK(paths.insert(std::string(text.key)).second);
    for (const auto& spelling : text.flags) {
      if (!spelling.name.empty()) CHECK(flags.insert(std::string(spelling.name)).second);
    }
    if (!text.variable.name.empty())
      CHECK(variables.insert(std::string(text.variable.name)).second);
  }
}

TEST_CASE("every row has a help text and a group, and its default is an allowed value") {
  for (const auto& row : knob_rows()) {
    CAPTURE(row.text->key);
    CHECK_FALSE(row.text->help.empty());
    CHECK_FALSE(row.text->group.empty());
    const auto text = format_fallback(row);
    const auto value = parse_knob(row, {}, text);
    REQUIRE(value);
    CHECK(*value == to_value(row.fallback));
  }
}

TEST_CASE("a switch has a no- form") {
  const auto match = match_flag("no-stall-check");
  REQUIRE(match.index == knob_index("stall.check"));
  CHECK(match.spelling.inverted);
  CHECK_FALSE(match_flag("no-log-hide-timestamp").spelling.inverted);
  CHECK(match_flag("no-fusion-threshold").index == -1);
}

TEST_CASE("the sections of a Horovod config file name the same knobs") {
  CHECK(match_config("params.fusion_threshold_mb").index == knob_index("fusion.threshold"));
  CHECK(match_config("params.fusion_threshold_mb").spelling.scale == 1048576);
  CHECK(match_config("autotune.enabled").index == knob_index("autotune"));
  CHECK(match_config("autotune.log_file").index == knob_index("autotune.log.file"));
  CHECK(match_config("timeline.mark_cycles").index == knob_index("timeline.mark.cycles"));
  CHECK(match_config("stall_check.enabled").index == knob_index("stall.check"));
  CHECK(match_config("logging.with_timestamp").index == knob_index("log.timestamp"));
  CHECK(match_config("library_options.num_nccl_streams").index == knob_index("num.nccl.streams"));
  CHECK(match_config("params.unheard_of").index == -1);
}
