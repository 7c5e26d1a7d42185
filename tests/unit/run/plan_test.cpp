// SPDX-License-Identifier: Apache-2.0
#include "apps/run/plan.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::apps;
using namespace std::chrono_literals;

namespace {

RunInvocation invocation(std::vector<Given> flags = {}) {
  RunInvocation made;
  made.options.np = 2;
  made.options.command = {"train", "--fast"};
  made.settings = Settings::resolve({.flags = std::move(flags)}).value();
  return made;
}

Result<Plan> plan(const RunInvocation& request, std::vector<const char*> environment = {},
                  int cores = 8) {
  environment.push_back(nullptr);
  return make_plan(request, {.environment = environment.data(),
                             .directory = "/work",
                             .program = "/bin/train",
                             .cores = cores});
}

/// Its values among what the ranks of `made` get.
std::vector<std::string> values_of(const Plan& made, std::string_view variable) {
  std::vector<std::string> values;
  for (const auto& [name, value] : *made.agents.front().common) {
    if (name == variable) values.push_back(value);
  }
  return values;
}

using Values = std::vector<std::string>;

std::string tag(const RunInvocation& request) {
  return plan(request).value().output.tag.render(
      {.rank = Rank{1}, .size = 2, .stream = launcher::Stream::err}, "");
}

}  // namespace

TEST_CASE("a plan has an agent per host that knows its ranks") {
  const auto made = plan(invocation({{.name = "grace", .value = "7s"}}), {"A=b"});
  REQUIRE(made);
  REQUIRE(made->agents.size() == 1);
  const auto& agent = made->agents.front();
  CHECK(agent.command == std::vector<std::string>{"train", "--fast"});
  CHECK(agent.directory == "/work");
  CHECK(agent.grace == 7s);
  REQUIRE(agent.ranks.size() == 2);
  CHECK(agent.ranks[1].rank == Rank{1});
  CHECK(agent.ranks[1].size == 2);
  CHECK(agent.ranks[1].master_port == agent.ranks[0].master_port);
  CHECK(agent.ranks[1].worker_addresses.size() == 2);
  CHECK(agent.ranks[0].job_id == made->job_id);
  CHECK(agent.common->front() == std::pair<std::string, std::string>{"A", "b"});
}

TEST_CASE("a knob that was set replaces what the environment said of it") {
  const auto made =
      plan(invocation({{.name = "cycle-time", .value = "5ms"}}), {"HORO_CYCLE_TIME=1ms"});
  CHECK(values_of(made.value(), "HORO_CYCLE_TIME").size() == 1);
  CHECK(made.value().common.size() >= 2);
}

TEST_CASE("the plan as JSON holds no value of an inherited variable") {
  const auto text = plan_json(plan(invocation(), {"MY_TOKEN=hunter2"}).value());
  CHECK_THAT(text, Catch::Contains("\"MY_TOKEN\"") && !Catch::Contains("hunter2"));
}

TEST_CASE("two plans share neither job id nor secret") {
  const auto a = plan(invocation()).value();
  const auto b = plan(invocation()).value();
  CHECK(a.job_id != b.job_id);
  CHECK(a.agents.front().secret != b.agents.front().secret);
}

TEST_CASE("hosts without -np take all their slots") {
  auto request = invocation();
  request.options.np.reset();
  request.options.hosts = "localhost:2,127.0.0.1:3";
  CHECK(plan(request).value().placement.ranks.size() == 5);
}

TEST_CASE("torch's Gloo gets the loopback interface unless the user chose one") {
  constexpr std::string_view kName = "GLOO_SOCKET_IFNAME";
  CHECK(values_of(plan(invocation(), {"GLOO_SOCKET_IFNAME=eth7"}).value(), kName) ==
        Values{"eth7"});
  CHECK(values_of(plan(invocation()).value(), kName) != Values{"eth7"});
}

TEST_CASE("several ranks share the cores among their threads, unless the user has decided") {
  constexpr std::string_view kName = "OMP_NUM_THREADS";
  auto request = invocation();
  CHECK(values_of(plan(request, {}, 8).value(), kName) == Values{"4"});
  CHECK(values_of(plan(request, {}, 3).value(), kName) == Values{"1"});
  CHECK(values_of(plan(request, {}, 1).value(), kName) == Values{"1"});
  CHECK(values_of(plan(request, {"OMP_NUM_THREADS="}, 8).value(), kName) == Values{"4"});
  CHECK(values_of(plan(request, {"OMP_NUM_THREADS=7"}, 8).value(), kName) == Values{"7"});
  CHECK(plan(request, {"OMP_NUM_THREADS=7"}).value().threads == 0);
  request.options.np = 1;
  CHECK(values_of(plan(request, {}, 8).value(), kName).empty());
}

TEST_CASE("lines are tagged with the rank, in Horovod's form on request, or not at all") {
  CHECK(tag(invocation()) == "[1] ");
  CHECK(tag(invocation({{.name = "tag", .value = "off"}})).empty());
  CHECK(tag(invocation({{.name = "prefix", .value = "{rank}/{size}|"}})) == "1/2|");
  auto request = invocation();
  request.options.horovod = true;
  CHECK(tag(request) == "[1]<stderr>:");
  request.options.np = 1;
  CHECK(tag(request) == "[1]<stderr>:");
  request.options.horovod = false;
  CHECK(tag(request).empty());
}

TEST_CASE("colours are off under NO_COLOR and on a dumb terminal") {
  CHECK(plan(invocation()).value().output.colours);
  CHECK(plan(invocation(), {"NO_COLOR="}).value().output.colours);
  CHECK(!plan(invocation(), {"NO_COLOR=1"}).value().output.colours);
  CHECK(!plan(invocation(), {"TERM=dumb"}).value().output.colours);
}

TEST_CASE("the plan as text quotes the command and hides what is known only at the start") {
  auto request = invocation();
  request.options.command = {"train", "a b", "it's"};
  const auto text = plan_text(plan(request).value());
  CHECK_THAT(text, Catch::Contains(R"(train 'a b' 'it'\''s')") && Catch::Contains("HORO_RANK=0"));
  CHECK_THAT(text, !Catch::Contains("HORO_BOARD_FD") && !Catch::Contains("HORO_RENDEZVOUS="));
}
