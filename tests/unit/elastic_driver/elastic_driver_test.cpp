// SPDX-License-Identifier: Apache-2.0
// The driver of an elastic job over fake agents, which pass on the calls of workers.
#include "launcher/elastic/driver/elastic_driver.hpp"

#include <array>
#include <csignal>
#include <fcntl.h>
#include <map>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "launcher/elastic/driver/monitored_elastic_job.hpp"
#include "launcher/output/job_output.hpp"
#include "tests/support/fake_starter.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;
using elastic::MembershipAnswer;
using elastic::MembershipCall;
using elastic::MembershipKind;

namespace {

/// An elastic job over fake agents, with a pipe for a screen.
struct World {
  std::unique_ptr<Loop> loop = Loop::make().value();
  std::array<int, 2> screen{};
  FakeStarter starter;
  std::optional<JobOutput> output;
  std::optional<ElasticDriver> driver;
  kv::Secret secret = kv::make_secret().value();
  std::vector<std::string> changes;
  bool plans_fail = false;
  std::vector<std::function<void(Result<ElasticHostPlan>)>> held_plans;  ///< Not answered yet.
  std::vector<std::string> notes;
  int finished = 0;

  explicit World(ElasticRules rules, const std::vector<discovery::Host>& hosts = {{"a", 2}},
                 ElasticAgent::Times times = {.start = 1h, .term_grace = 1s, .close = 1h},
                 const std::string& held_host = {}) {
    REQUIRE(pipe2(screen.data(), O_CLOEXEC | O_NONBLOCK) == 0);
    output.emplace(*loop, OutputOptions{.out_fd = screen[1], .err_fd = screen[1]},
                   std::vector<RankLabel>{}, std::nullopt);
    const std::shared_ptr<Starter> shared(std::shared_ptr<void>(), &starter);
    driver.emplace(
        *loop, ElasticJobSpec{.rules = rules, .secret = secret, .time_limit = {}, .times = times},
        [this, shared, held_host](const ElasticHost& host,
                                  std::function<void(Result<ElasticHostPlan>)> answer) {
          if (host.name == held_host) return held_plans.push_back(std::move(answer));
          loop->post([this, shared, name = host.name, answer = std::move(answer)] {
            if (plans_fail) return answer(fail(Errc::not_found, "no such host"));
            answer(ElasticHostPlan{
                .spec = {.host = name}, .worker = {.hostname = name}, .starter = shared});
          });
        },
        *output,
        ElasticHandlers{.on_change = [this](std::string_view line) { changes.emplace_back(line); },
                        .on_output = [](Rank, Stream, std::string_view) {},
                        .on_note = [this](const std::string&,
                                          std::string_view text) { notes.emplace_back(text); },
                        .on_control_group = [](const std::string&, const ControlGroupInfo&) {},
                        .on_finished =
                            [this] {
                              ++finished;
                              loop->stop();
                            }});
    REQUIRE(driver->start(discovery::HostSet(hosts)));
    turn();
  }

  ~World() {
    driver.reset();
    for (const int fd : screen) close(fd);
  }

  /// Runs what is due.
  void turn() {
    for (int i = 0; i < 5; ++i) {
      loop->post([this] { loop->stop(); });
      loop->run();
    }
  }

  AgentEvents& events(std::size_t host = 0) { return *starter.host(host).events; }

  /// The agent is ready, and starts what it is told to start.
  void begin_host(std::size_t host = 0) {
    events(host).on_ready({});
    turn();
    for (const auto& worker : starter.host(host).spawned)
      events(host).on_started(Rank{worker.worker}, 1000 + worker.worker);
  }

  /// The hosts whose agents have started the worker.
  std::size_t host_of(std::uint32_t worker) {
    for (std::size_t host = 0; host < starter.started(); ++host) {
      const auto& spawned = starter.host(host).spawned;
      const auto is_it = [worker](const WorkerIdentity& one) {
        return one.worker == static_cast<int>(worker);
      };
      if (std::ranges::any_of(spawned, is_it)) return host;
    }
    FAIL("worker " << worker << " was never started");
    return 0;
  }

  /// Workers call. The agent of each host passes the calls of its workers on together.
  void call_only(const std::vector<MembershipCall>& calls) {
    std::map<std::size_t, std::vector<MembershipCall>> by_host;
    for (const auto& one : calls) by_host[host_of(one.worker)].push_back(one);
    for (const auto& [host, its] : by_host) events(host).on_called(its);
    turn();
  }

  /// Workers call, and get their answers in this order.
  std::vector<MembershipAnswer> call(const std::vector<MembershipCall>& calls) {
    call_only(calls);
    std::vector<MembershipAnswer> answers;
    for (const auto& one : calls) {
      const auto& all = starter.host(host_of(one.worker)).answered;
      const auto found = std::ranges::find_if(all, [&](const elastic::CallAnswer& answer) {
        return answer.worker == one.worker && answer.attempt == one.attempt;
      });
      REQUIRE(found != all.end());
      answers.push_back(found->answer);
    }
    return answers;
  }

  void end(int worker, int wait_status, std::size_t host = 0) {
    events(host).on_exit({.rank = Rank{worker}, .wait_status = wait_status, .lived = 1s});
    turn();
  }
};

ElasticRules rules(int least, int most) {
  return {.min_np = least, .max_np = most, .np = most};
}

constexpr int kKilled = SIGKILL;
constexpr int kExit3 = 3 << 8;

}  // namespace

TEST_CASE("workers start when their host's agent is ready, and get their places when all called") {
  World world(rules(1, 2));
  REQUIRE(world.starter.started() == 1);
  CHECK(world.starter.host(0).spec.elastic);
  CHECK(world.starter.host(0).spec.held);
  CHECK(world.starter.host(0).spec.slots >= 2);
  CHECK(world.starter.host(0).spawned.empty());
  world.begin_host();
  REQUIRE(world.starter.host(0).spawned.size() == 2);
  const auto& first = world.starter.host(0).spawned[0];
  CHECK(first.rendezvous == world.driver->store_address());
  CHECK(first.elastic);
  const auto answers = world.call({{.worker = 0}, {.worker = 1}});
  REQUIRE(answers.size() == 2);
  CHECK((answers[0].rank == 0 && answers[1].rank == 1 && answers[0].size == 2));
  CHECK(answers[0].generation == 1);
  CHECK(answers[0].survivors == 0);
}

TEST_CASE("survivors of a loss get their places at once, and the replacement joins later") {
  World world(rules(1, 2));
  world.begin_host();
  world.call({{.worker = 0}, {.worker = 1}});
  world.end(1, kKilled);
  REQUIRE(world.starter.host(0).spawned.size() == 3);
  CHECK(world.starter.host(0).spawned[2].worker == 2);
  const auto alone = world.call({{.worker = 0, .attempt = 2, .generation = 1}});
  CHECK((alone[0].generation == 2 && alone[0].size == 1 && alone[0].survivors == 1));
  CHECK_THAT(world.changes.back(), Catch::Contains("generation 2: 1 rank, without worker 1 on host "
                                                   "a (killed by signal 9 (SIGKILL))"));
  // The new worker calls, and the member is told of it.
  world.call_only({{.worker = 2}});
  CHECK(world.starter.host(0).count("notice 1 2") == 1);
  const auto both = world.call({{.worker = 0, .attempt = 3, .generation = 2}});
  CHECK((both[0].size == 2 && both[0].notice == 1));
  CHECK_THAT(world.changes.back(), Catch::Contains("with worker 2 on host a"));
}

TEST_CASE("a job ends with success when all workers end with code 0") {
  World world(rules(1, 2));
  world.begin_host();
  world.call({{.worker = 0}, {.worker = 1}});
  world.end(0, 0);
  world.end(1, 0);
  CHECK(world.starter.host(0).count("close") == 1);
  CHECK(world.finished == 0);
  world.events().on_finished(0);
  world.turn();
  CHECK(world.finished == 1);
  REQUIRE(world.driver->end());
  CHECK(world.driver->end()->exit_code == 0);
}

TEST_CASE("the exit code of a job whose workers all fail is that of the first one") {
  auto once = rules(2, 2);
  once.slot_restarts = 0;
  World world(once);
  world.begin_host();
  world.end(1, kExit3);
  world.end(0, kKilled);
  world.events().on_finished(0);
  world.turn();
  REQUIRE(world.driver->end());
  CHECK(world.driver->end()->exit_code == 3);
  CHECK(world.driver->end()->worker == 1);
}

TEST_CASE("a host that cannot be planned or started counts as lost, by name") {
  World world(rules(1, 2));
  REQUIRE(world.starter.started() == 1);
  world.events().on_lost({Errc::unavailable, "no route to it"});
  world.turn();
  REQUIRE(world.driver->end());
  CHECK(world.driver->end()->exit_code != 0);
  CHECK_THAT(world.driver->end()->failure, Catch::Contains("no route to it"));
}

TEST_CASE("an agent that is not ready in time is killed and counts as lost") {
  World world(rules(1, 2), {{"a", 2}}, {.start = 10ms, .term_grace = 1s, .close = 1h});
  world.starter.host(0).step = "connecting to a:22";
  while (!world.driver->end()) {
    const auto timer = world.loop->after(5ms, [&] { world.loop->stop(); });
    world.loop->run();
  }
  CHECK(world.starter.host(0).count("kill") == 1);
  CHECK_THAT(world.driver->end()->failure,
             Catch::Contains("--start-timeout 10 ms: connecting to a:22"));
}

TEST_CASE("the time to start an agent does not pass while the launcher is suspended") {
  World world(rules(1, 2), {{"a", 2}}, {.start = 500ms, .term_grace = 1s, .close = 1h});
  world.driver->suspend();
  const auto later = world.loop->after(700ms, [&] { world.loop->stop(); });
  world.loop->run();
  CHECK(world.starter.host(0).count("kill") == 0);
  world.driver->resume();
  CHECK_FALSE(world.driver->end());
  world.begin_host();
  CHECK(world.starter.host(0).spawned.size() == 2);
}

TEST_CASE("agents that have no way to the store are lost, and another host takes their place") {
  // One worker on each of the first two hosts; the third has no agent yet.
  World world(rules(1, 2), {{"a", 1}, {"b", 1}, {"c", 2}});
  REQUIRE(world.starter.started() == 2);
  world.events(0).on_ready({});
  // This machine has no such address, so the store cannot listen there.
  world.events(1).on_ready({.address = "192.0.2.7", .launcher_address = "192.0.2.9"});
  world.turn();
  CHECK(world.starter.host(0).count("kill") == 1);
  CHECK(world.starter.host(1).count("kill") == 1);
  REQUIRE(world.starter.started() == 3);
  CHECK(world.starter.host(2).spec.host == "c");
  CHECK(std::ranges::any_of(world.changes, [](const std::string& line) {
    return line.starts_with("host a is put aside: host a was lost");
  }));
}

TEST_CASE("a host that comes later gets an agent, and its workers join") {
  World world(rules(1, 4), {{"a", 4}});
  REQUIRE(world.starter.started() == 1);
  world.begin_host();
  world.driver->offer(discovery::HostSet(std::vector<discovery::Host>{{"a", 2}, {"b", 2}}));
  world.turn();
  REQUIRE(world.starter.started() == 2);
  CHECK(world.starter.host(1).spec.host == "b");
}

TEST_CASE("this machine's workers wait until it is known how other hosts reach it") {
  World world(rules(1, 4), {{"a", 2}, {"b", 2}});
  REQUIRE(world.starter.started() == 2);
  world.events(0).on_ready({});
  world.turn();
  CHECK(world.starter.host(0).spawned.empty());
  world.events(1).on_ready(
      {.address = "127.0.0.1", .interface = "lo", .launcher_address = "127.0.0.2"});
  world.turn();
  REQUIRE(world.starter.host(0).spawned.size() == 2);
  CHECK(world.starter.host(0).spawned[0].rendezvous.starts_with("127.0.0.2:"));
  CHECK(world.starter.host(1).spawned[0].rendezvous.starts_with("127.0.0.2:"));
  CHECK(world.starter.host(1).spec.environment == Environment{{"GLOO_SOCKET_IFNAME", "lo"}});
}

TEST_CASE("this machine's workers do not wait for a host that goes before it has a plan") {
  World world(rules(1, 4), {{"a", 2}, {"b", 2}}, {.start = 1h, .term_grace = 1s, .close = 1h}, "b");
  REQUIRE(world.starter.started() == 1);
  world.events(0).on_ready({});
  world.turn();
  CHECK(world.starter.host(0).spawned.empty());
  world.driver->offer(discovery::HostSet({{.name = "a", .slots = 2}}));
  world.turn();
  CHECK(world.starter.host(0).spawned.size() == 2);
}

TEST_CASE("a plan that comes after it was given up has no effect, also on a later start") {
  World world(rules(1, 4), {{"a", 2}, {"b", 2}}, {.start = 1h, .term_grace = 1s, .close = 1h}, "b");
  world.driver->offer(discovery::HostSet({{.name = "a", .slots = 2}}));
  world.turn();
  world.driver->offer(discovery::HostSet(std::vector<discovery::Host>{{"a", 2}, {"b", 2}}));
  world.turn();
  REQUIRE(world.held_plans.size() == 2);
  world.held_plans[0](fail(Errc::timed_out, "an old answer"));
  world.turn();
  CHECK(std::ranges::none_of(world.changes, [](const std::string& line) {
    return line.find("an old answer") != std::string::npos;
  }));
  const std::shared_ptr<Starter> shared(std::shared_ptr<void>(), &world.starter);
  world.held_plans[1](
      ElasticHostPlan{.spec = {.host = "b"}, .worker = {.hostname = "b"}, .starter = shared});
  world.turn();
  REQUIRE(world.starter.started() == 2);
  CHECK(world.starter.host(1).spec.host == "b");
}

TEST_CASE("an agent that does not end after its last worker is killed") {
  World world(rules(1, 2), {{"a", 2}}, {.start = 1h, .term_grace = 1s, .close = 10ms});
  world.begin_host();
  world.call({{.worker = 0}, {.worker = 1}});
  world.end(0, 0);
  world.end(1, 0);
  if (!world.finished) world.loop->run();
  CHECK(world.starter.host(0).count("close") == 1);
  CHECK(world.starter.host(0).count("kill") == 1);
  CHECK(world.notes.back() ==
        "its agent did not end within 10 ms after its last worker, and is killed");
  CHECK(world.driver->end()->exit_code == 0);
}

TEST_CASE("a later failure to list the hosts is one line, and the job goes on") {
  World world(rules(1, 2));
  world.begin_host();
  world.driver->offer_failed({Errc::io, "script ended with code 3"});
  CHECK(world.changes.back() == "script ended with code 3; the last known hosts stay");
  CHECK_FALSE(world.driver->end());
}

TEST_CASE("a worker that has ended is refused if a call of it still comes") {
  World world(rules(1, 2), {{"a", 2}, {"b", 2}});
  world.begin_host();
  world.call({{.worker = 0}, {.worker = 1}});
  world.end(1, kKilled);
  const auto answers = world.call({{.worker = 1, .attempt = 2, .generation = 1}});
  CHECK(answers[0].kind == MembershipKind::refused);
  CHECK_THAT(answers[0].reason, Catch::Contains("worker 1 is not part of this job"));
}

TEST_CASE(
    "all members of a host get their answers in one message, and every agent hears of the "
    "end of a generation") {
  World world(rules(1, 4), {{"a", 2}, {"b", 2}});
  world.begin_host(0);
  world.begin_host(1);
  world.begin_host(0);
  world.call({{.worker = 0}, {.worker = 1}, {.worker = 2}, {.worker = 3}});
  CHECK(world.starter.host(0).answer_messages == 1);
  CHECK(world.starter.host(1).answer_messages == 1);
  CHECK(world.starter.host(0).answered.size() == 2);
  world.end(0, kKilled);
  CHECK(world.starter.host(0).count("end meeting 1") == 1);
  CHECK(world.starter.host(1).count("end meeting 1") == 1);
  const auto answers = world.call({{.worker = 1, .attempt = 2, .generation = 1},
                                   {.worker = 2, .attempt = 2, .generation = 1},
                                   {.worker = 3, .attempt = 2, .generation = 1}});
  CHECK(world.starter.host(0).answer_messages == 2);
  CHECK(world.starter.host(1).answer_messages == 2);
  CHECK((answers[0].rank == 0 && answers[0].size == 3));
}

TEST_CASE("more slots than an agent has room for are left unused with one line") {
  World world({.min_np = 1, .max_np = 2000, .np = 2});
  world.begin_host();
  world.driver->offer(discovery::HostSet({{.name = "a", .slots = 1000}}));
  world.turn();
  CHECK(std::ranges::any_of(world.changes, [](const std::string& line) {
    return line.find("of its 1000 slots are used") != std::string::npos;
  }));
  CHECK(world.starter.host(0).spawned.size() == world.starter.host(0).spec.slots);
}

TEST_CASE("a worker that is to end before its agent is ready is never started") {
  World world(rules(1, 4), {{"a", 4}});
  world.driver->offer(discovery::HostSet({{.name = "a", .slots = 2}}));
  world.turn();
  world.begin_host();
  CHECK(world.starter.host(0).spawned.size() == 2);
}

TEST_CASE("a signal stops all agents, and the job ends with its code") {
  World world(rules(1, 2));
  world.begin_host();
  world.call({{.worker = 0}, {.worker = 1}});
  world.driver->signal(SIGINT);
  world.turn();
  CHECK(world.starter.host(0).count("stop -1") == 1);
  world.end(0, SIGTERM);
  world.end(1, SIGTERM);
  world.events().on_finished(0);
  world.turn();
  CHECK(world.finished == 1);
  CHECK(world.driver->end()->exit_code == 130);
}

TEST_CASE("an agent that is told to end announces that its host goes") {
  World world(rules(1, 4), {{"a", 2}, {"b", 2}});
  world.begin_host(0);
  world.begin_host(1);
  world.begin_host(0);
  world.call({{.worker = 0}, {.worker = 1}, {.worker = 2}, {.worker = 3}});
  world.events(1).on_end_asked(SIGTERM);
  world.turn();
  CHECK(world.starter.host(0).count("notice 1 1") == 1);
  CHECK(world.starter.host(1).count("notice 1 1") == 1);
}

TEST_CASE("a wish of the user lets a host leave, and stays when the source offers the host again") {
  World world(rules(1, 4), {{"a", 2}, {"b", 2}});
  world.begin_host(0);
  world.begin_host(1);
  world.begin_host(0);
  world.call({{.worker = 0}, {.worker = 1}, {.worker = 2}, {.worker = 3}});
  const Resize wish{.kind = ResizeKind::shrink, .host = "b"};
  auto dry = wish;
  dry.dry_run = true;
  CHECK(world.driver->resize(dry).accepted);
  CHECK(world.starter.host(1).count("notice 1 1") == 0);
  CHECK(world.driver->resize(wish).accepted);
  world.turn();
  CHECK(world.starter.host(0).count("notice 1 1") == 1);
  CHECK(world.starter.host(1).count("notice 1 1") == 1);
  const auto again = world.driver->resize(wish);
  CHECK_FALSE(again.accepted);
  CHECK_THAT(again.text, Catch::Contains("host b was asked to leave already"));
  world.driver->offer(discovery::HostSet({{"a", 2}}));
  world.driver->offer(discovery::HostSet({{"a", 2}, {"b", 2}}));
  CHECK(world.driver->state().hosts.room() == 2);
  CHECK(world.driver->resize({.kind = ResizeKind::grow, .host = "b"}).accepted);
  CHECK(world.driver->state().hosts.room() == 4);
}

TEST_CASE("questions of viewers reach the agents of an elastic job, and the answers come back") {
  World world(rules(1, 2), {{"a", 2}});
  const auto job = monitored(*world.driver, "unit");
  CHECK_FALSE(job->ask(0, Look{}));
  world.begin_host(0);
  world.call({{.worker = 0}, {.worker = 1}});
  std::size_t heard = 0;
  job->on_answer([&](std::size_t agent, const Answer& answer) {
    CHECK(agent == 0);
    heard = std::get<Viewed>(answer).rows.size();
  });
  CHECK(job->ask(0, Look{}));
  CHECK(world.starter.host(0).count("look 0") == 1);
  world.events(0).on_answer(0, Viewed{.problem = {}, .rows = {{.rank = 0}, {.rank = 1}}});
  CHECK(heard == 2);
  const auto roster = job->roster();
  CHECK(roster.elastic);
  REQUIRE(roster.agents.size() == 1);
  CHECK(roster.agents[0].ranks == std::vector<int>{0, 1});
  CHECK(job->members()->now.ranks == 2);
}
