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

Result<Plan> plan(const RunInvocation& request, std::vector<const char*> environment = {}) {
  environment.push_back(nullptr);
  return make_plan(
      request, {.environment = environment.data(), .directory = "/work", .program = "/bin/train"});
}

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
  CHECK(agent.environment.front() == std::pair<std::string, std::string>{"A", "b"});
}

TEST_CASE("a knob that was set replaces what the environment said of it") {
  const auto made =
      plan(invocation({{.name = "cycle-time", .value = "5ms"}}), {"HORO_CYCLE_TIME=1ms"});
  const auto& environment = made.value().agents.front().environment;
  const auto given = std::count_if(environment.begin(), environment.end(), [](const auto& entry) {
    return entry.first == "HORO_CYCLE_TIME";
  });
  CHECK(given == 1);
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
  const auto has = [](const Plan& made) {
    for (const auto& [name, value] : made.agents.front().environment) {
      if (name == "GLOO_SOCKET_IFNAME") return value;
    }
    return std::string();
  };
  CHECK(has(plan(invocation(), {"GLOO_SOCKET_IFNAME=eth7"}).value()) == "eth7");
  CHECK(has(plan(invocation()).value()) != "eth7");
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
