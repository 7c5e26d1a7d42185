// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/job_plan.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "apps/run/plan_text.hpp"

using namespace horo;
using namespace horo::apps;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

JobRequest request(std::vector<Given> flags = {}) {
  JobRequest made{.command = {"train", "--fast"}, .directory = "/work"};
  made.np = 2;
  made.settings = Settings::resolve({.flags = std::move(flags)}).value();
  return made;
}

Result<JobPlan> plan(JobRequest made, std::vector<const char*> environment = {}, int cores = 8) {
  environment.push_back(nullptr);
  made.environment = environment.data();
  HORO_TRY(auto facts, probe_job(made));
  facts.cores = cores;
  return plan_job(made, std::move(facts));
}

/// The values of `variable` among those that the ranks of `made` get.
std::vector<std::string> values_of(const JobPlan& made, std::string_view variable) {
  std::vector<std::string> values;
  for (const auto& [name, value] : *made.agents.front().common) {
    if (name == variable) values.push_back(value);
  }
  return values;
}

using Values = std::vector<std::string>;

std::string tag(const JobRequest& made) {
  return plan(made).value().output.tag.render({.rank = Rank{1}, .size = 2, .stream = Stream::err},
                                              "");
}

}  // namespace

TEST_CASE("a plan has an agent per host that knows its ranks") {
  const auto made = plan(request({{.name = "grace", .value = "7s"}}), {"A=b"});
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
      plan(request({{.name = "cycle-time", .value = "5ms"}}), {"HORO_CYCLE_TIME=1ms"});
  CHECK(values_of(made.value(), "HORO_CYCLE_TIME").size() == 1);
  CHECK(made.value().common.size() >= 2);
}

TEST_CASE("the plan as JSON holds no value of an inherited variable") {
  const auto text = plan_json(plan(request(), {"MY_TOKEN=hunter2"}).value());
  CHECK_THAT(text, Catch::Contains("\"MY_TOKEN\"") && !Catch::Contains("hunter2"));
}

TEST_CASE("the same request and facts give the same plan") {
  const std::vector<const char*> environment{"A=b", nullptr};
  auto made = request();
  made.environment = environment.data();
  const auto facts = probe_job(made).value();
  CHECK(plan_json(plan_job(made, facts).value()) == plan_json(plan_job(made, facts).value()));
}

TEST_CASE("ranks are placed on another machine's hosts without asking this one") {
  auto made = request();
  made.environment = std::vector<const char*>{nullptr}.data();
  made.np = 3;
  const auto placement = place_ranks(made, discovery::HostSet({{"a", 2}, {"b", 2}}), "a test");
  REQUIRE(placement);
  CHECK(placement->hosts[0].count() == 2);
  CHECK(placement->hosts[1].count() == 1);
  made.np = 5;
  CHECK_THAT(place_ranks(made, discovery::HostSet({{"a", 2}}), "a test").error().message,
             Catch::Contains("a test"));
}

TEST_CASE("a host without slots gets no rank, and a list of such hosts is refused") {
  auto made = request();
  const discovery::HostSet hosts({{"a", 0}, {"b", 2}, {"c", 0}, {"d", 1}});
  made.np.reset();
  const auto placement = place_ranks(made, hosts, "a test");
  REQUIRE(placement);
  REQUIRE(placement->hosts.size() == 2);
  CHECK(placement->hosts[0].name == "b");
  CHECK(placement->hosts[1].name == "d");
  CHECK(placement->ranks.size() == 3);
  for (const auto np : {std::optional<int>(), std::optional(1)}) {
    made.np = np;
    CHECK(place_ranks(made, discovery::HostSet({{"a", 0}, {"b", 0}}), "a test").error().message ==
          "a test: no host has a slot (a:0, b:0); give at least one of them a number of slots");
  }
}

TEST_CASE("two plans share neither job id nor secret") {
  const auto a = plan(request()).value();
  const auto b = plan(request()).value();
  CHECK(a.job_id != b.job_id);
  CHECK(a.agents.front().secret != b.agents.front().secret);
}

TEST_CASE("hosts without -np take all their slots") {
  auto made = request();
  made.np.reset();
  made.hosts = "localhost:2,127.0.0.1:3";
  CHECK(plan(made).value().placement.ranks.size() == 5);
}

TEST_CASE("torch's Gloo gets the loopback interface unless the user chose one") {
  constexpr std::string_view kName = "GLOO_SOCKET_IFNAME";
  CHECK(values_of(plan(request(), {"GLOO_SOCKET_IFNAME=eth7"}).value(), kName) == Values{"eth7"});
  CHECK(values_of(plan(request()).value(), kName) != Values{"eth7"});
}

TEST_CASE("several ranks share the cores among their threads, unless the user has decided") {
  constexpr std::string_view kName = "OMP_NUM_THREADS";
  auto made = request();
  CHECK(values_of(plan(made, {}, 8).value(), kName) == Values{"4"});
  CHECK(values_of(plan(made, {}, 3).value(), kName) == Values{"1"});
  CHECK(values_of(plan(made, {}, 1).value(), kName) == Values{"1"});
  CHECK(values_of(plan(made, {"OMP_NUM_THREADS="}, 8).value(), kName) == Values{"4"});
  CHECK(values_of(plan(made, {"OMP_NUM_THREADS=7"}, 8).value(), kName) == Values{"7"});
  CHECK(plan(made, {"OMP_NUM_THREADS=7"}).value().threads == 0);
  made.np = 1;
  CHECK(values_of(plan(made, {}, 8).value(), kName).empty());
}

TEST_CASE("lines are tagged with the rank, in Horovod's form on request, or not at all") {
  CHECK(tag(request()) == "[1] ");
  CHECK(tag(request({{.name = "tag", .value = "off"}})).empty());
  CHECK(tag(request({{.name = "prefix", .value = "{rank}/{size}|"}})) == "1/2|");
  auto made = request();
  made.format = OutputFormat::horovod;
  CHECK(tag(made) == "[1]<stderr>:");
  made.np = 1;
  CHECK(tag(made) == "[1]<stderr>:");
  made.format = OutputFormat::horo;
  CHECK(tag(made).empty());
}

TEST_CASE("colours are off under NO_COLOR and on a dumb terminal") {
  CHECK(plan(request()).value().output.colours);
  CHECK(plan(request(), {"NO_COLOR="}).value().output.colours);
  CHECK(!plan(request(), {"NO_COLOR=1"}).value().output.colours);
  CHECK(!plan(request(), {"TERM=dumb"}).value().output.colours);
}

TEST_CASE("the plan as text quotes the command and hides what is known only at the start") {
  auto made = request();
  made.command = {"train", "a b", "it's"};
  const auto text = plan_text(plan(made).value());
  CHECK_THAT(text, Catch::Contains(R"(train 'a b' 'it'\''s')") && Catch::Contains("HORO_RANK=0"));
  CHECK_THAT(text, !Catch::Contains("HORO_BOARD_FD") && !Catch::Contains("HORO_RENDEZVOUS="));
}
