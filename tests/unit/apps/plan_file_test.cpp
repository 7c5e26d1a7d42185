// SPDX-License-Identifier: Apache-2.0
#include "apps/common/plan_file.hpp"

#include <catch2/catch.hpp>

using namespace horo;        // NOLINT(google-build-using-namespace): a test of this namespace
using namespace horo::apps;  // NOLINT(google-build-using-namespace): as above

namespace {

SavedPlan sample() {
  return {.command = {"python3", "train.py", "a \"b\"\n", ""},
          .directory = "/srv/train",
          .bind_to = "core",
          .gpus = "off",
          .hosts = {{"node1", {0, 1, 2, 5}}, {"fe80::1", {3}}, {"node2", {4, 6, 7}, "eva"}}};
}

std::string with_hosts(const std::string& hosts) {
  return R"({"horo_plan": 1, "command": ["x"], "directory": "/", "bind_to": "none", "gpus": "off", "hosts": )" +
         hosts + "}";
}

}  // namespace

TEST_CASE("a plan that is written to a file and read again is the same") {
  const auto text = plan_file_text(sample());
  CHECK_THAT(text, Catch::Contains("\"ranks\": \"0-2,5\""));
  CHECK_THAT(text, Catch::Contains("\"name\": \"eva@node2\""));
  const auto back = parse_plan_file(text, "p.json");
  REQUIRE(back);
  CHECK(*back == sample());
}

TEST_CASE("a plan file with a fault is refused with its place") {
  const auto [text, part] = GENERATE(table<std::string, std::string>({
      {"", "p.json:1:1: it must be an object"},
      {"[1]", "p.json:1:1: it must be an object"},
      {"{", "p.json:1:1: "},
      {"{\"horo_plan\": 2}", "horo_plan must be 1; write the plan again with --plan-out"},
      {"{\"horo_plan\": 1}", "key 'bind_to' is missing"},
      {"{\"horo_plan\": 1,\n \"comand\": [\"x\"]}",
       "p.json:2:2: unknown key 'comand'; did you mean"},
      {"{\"horo_plan\": 1, \"horo_plan\": 1}", "key 'horo_plan' is given twice"},
      {"{\"horo_plan\": 1, \"command\": []}", "a list of the command's words is wanted"},
      {"{\"horo_plan\": 1, \"command\": [\"\"]}", "the command begins with an empty word"},
      {with_hosts("[]"), "a list of hosts is wanted"},
      {with_hosts(R"([{"name": "a"}])"), "a host must be {\"name\": ..., \"ranks\":"},
      {with_hosts(R"([{"name": "-a", "ranks": "0"}])"), "'-a' is not the name of a host"},
      {with_hosts(R"([{"name": "a", "ranks": "0,x"}])"), "'0,x' must be ascending ranks"},
      {with_hosts(R"([{"name": "a", "ranks": "1,0"}])"), "'1,0' must be ascending ranks"},
      {with_hosts(R"([{"name": "a", "ranks": ""}])"), "'' must be ascending ranks"},
      {with_hosts(R"([{"name": "a", "ranks": "0-1000000"}])"), "below 1000000"},
      {with_hosts(R"([{"name": "a", "ranks": "0"}, {"name": "a", "ranks": "1"}])"),
       "is listed twice"},
      {with_hosts(R"([{"name": "a", "ranks": "0,2"}])"),
       "rank 2 on host 'a' is past the last of 2"},
      {with_hosts(R"([{"name": "a", "ranks": "0-1"}, {"name": "b", "ranks": "1"}])"),
       "rank 1 is on host 'a' and on host 'b'"},
  }));
  INFO(text);
  const auto plan = parse_plan_file(text, "p.json");
  REQUIRE(!plan);
  CHECK(plan.error().code == Errc::invalid_argument);
  CHECK_THAT(plan.error().message, Catch::StartsWith("p.json:") && Catch::Contains(part));
}

TEST_CASE("the error for a missing plan file names it") {
  const auto plan = read_plan_file("/nonexistent/plan");
  REQUIRE(!plan);
  CHECK(plan.error().code == Errc::not_found);
  CHECK_THAT(plan.error().message, Catch::Contains("plan file '/nonexistent/plan'"));
  CHECK(!write_plan_file("/nonexistent/plan", sample()));
}
