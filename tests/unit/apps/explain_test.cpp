// SPDX-License-Identifier: Apache-2.0
#include "apps/common/explain.hpp"

#include <catch2/catch.hpp>

using namespace horo;  // NOLINT(google-build-using-namespace): a test of this namespace

TEST_CASE("the explanation shows value and origin of each knob") {
  const auto settings = Settings::resolve({.flags = {{"grace", "1s", ""}}});
  REQUIRE(settings);
  const auto text = apps::explain_text(*settings);
  CHECK(std::count(text.begin(), text.end(), '\n') == static_cast<long>(knob_rows().size()));
  const auto at = text.find("\ngrace ");
  REQUIRE(at != std::string::npos);
  const auto line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  CHECK(line.find(" 1s ") != std::string::npos);
  CHECK(line.ends_with("  flag --grace"));
}

TEST_CASE("in JSON, a default has no origin place") {
  const auto json = apps::explain_json(Settings());
  CHECK(json.find(R"("key": "fusion.threshold",)") != std::string::npos);
  CHECK(json.find(R"("value": "64MiB",)") != std::string::npos);
  CHECK(json.find(R"("from": null)") != std::string::npos);
}
