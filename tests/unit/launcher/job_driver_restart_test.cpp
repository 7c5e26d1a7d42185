// SPDX-License-Identifier: Apache-2.0
// Agents that wait between two generations of a job.
#include <csignal>
#include <fcntl.h>

#include <catch2/catch.hpp>

#include "base/unique_fd.hpp"
#include "launcher/job/job_driver.hpp"
#include "launcher/output/job_output.hpp"
#include "tests/support/fake_starter.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

using Calls = std::vector<std::string>;
using Same = std::vector<std::optional<std::size_t>>;

/// A job of two hosts with a rank each, which may be restarted three times.
struct World {
  std::unique_ptr<Loop> loop = Loop::make().value();
  UniqueFd screen{open("/dev/null", O_WRONLY | O_CLOEXEC)};
  FakeStarter starter;
  std::optional<JobOutput> output;
  std::optional<JobDriver> job;
  int planned = 0;
  int ended = 0;
  int finished = 0;

  World() {
    output.emplace(*loop, OutputOptions{.out_fd = screen.value(), .err_fd = screen.value()},
                   std::vector<RankLabel>(2), std::nullopt);
    job.emplace(*loop,
                JobSpec{.start_timeout = 10s, .policy = RestartPolicy::parse("3", "any").value()},
                spec({}),
                JobHandlers{.on_ended = [this] { ++ended; },
                            .on_plan = [this] { ++planned; },
                            .on_finished = [this] { ++finished; }});
    job->start();
  }

  GenerationSpec spec(Same same, std::vector<discovery::Host> hosts = {{"a", 1}, {"b", 1}}) {
    const auto placement = place(discovery::HostSet(hosts), {.np = 2}).value();
    GenerationSpec made{.placement = placement,
                        .starter = std::shared_ptr<Starter>(std::shared_ptr<void>(), &starter),
                        .output = &*output,
                        .same_as = std::move(same)};
    for (const auto& host : placement.hosts) made.agents.push_back({.host = host.name});
    return made;
  }

  AgentEvents& events(std::size_t agent) { return *starter.host(agent).events; }

  Calls calls(std::size_t agent) { return std::exchange(starter.host(agent).calls, {}); }

  void run_ranks(std::size_t agent, Rank rank) {
    events(agent).on_control_group({});
    events(agent).on_started(rank, 10);
  }

  /// Rank 1 fails, and both agents wait.
  void fail_generation(std::size_t a = 0, std::size_t b = 1) {
    run_ranks(a, Rank{0});
    run_ranks(b, Rank{1});
    events(b).on_exit({.rank = Rank{1}, .wait_status = 7 << 8});
    events(b).on_waiting(0);
    events(a).on_exit({.rank = Rank{0}, .wait_status = SIGTERM});
    events(a).on_waiting(0);
    turn();
  }

  /// The next generation is to be planned.
  void restart() {
    job->restart();
    while (planned == 0) turn();
    planned = 0;
  }

  void turn() {
    for (int i = 0; i < 8; ++i) {
      const auto soon = loop->after(1ms, [this] { loop->stop(); });
      loop->run();
    }
  }
};

}  // namespace

TEST_CASE("a restart on the same hosts gives the agents that wait another assignment") {
  World world;
  CHECK(world.starter.host(0).spec.epoch == Epoch{1});
  CHECK(world.starter.host(0).spec.stay > Duration::zero());
  world.fail_generation();
  CHECK(world.ended == 1);
  CHECK(world.job->state().phase == Phase::restarting);
  for (const std::size_t agent : {0, 1}) world.calls(agent);
  world.restart();
  world.job->begin(world.spec({0, 1}));
  CHECK(world.starter.started() == 2);
  for (const std::size_t agent : {0, 1}) {
    CHECK(world.calls(agent) == Calls{"assign"});
    CHECK(world.starter.host(agent).spec.epoch == Epoch{2});
  }
  CHECK(world.job->kept_agents() == 0);
  world.run_ranks(0, Rank{0});
  world.run_ranks(1, Rank{1});
  CHECK(world.job->kept_agents() == 2);
  CHECK(world.job->state().phase == Phase::running);
}

TEST_CASE("an agent may serve another host number of the next generation") {
  World world;
  world.fail_generation();
  world.restart();
  world.job->begin(world.spec({1, std::nullopt}, {{"b", 1}, {"c", 1}}));
  REQUIRE(world.starter.started() == 3);
  CHECK(world.starter.host(1).count("assign") == 1);
  CHECK(world.starter.host(1).spec.host == "b");
  CHECK(world.starter.host(2).spec.host == "c");
  CHECK(world.calls(0).back() == "release");
  world.run_ranks(1, Rank{0});
  world.events(1).on_exit({.rank = Rank{0}, .wait_status = 3 << 8});
  CHECK(world.job->state().generation.first_failure->host == 0);
}

TEST_CASE("an agent that dies between two generations is replaced") {
  World world;
  world.fail_generation();
  world.restart();
  SECTION("before the next one is planned") {
    world.events(0).on_lost({Errc::unavailable, "killed"});
    world.job->begin(world.spec({0, 1}));
  }
  SECTION("before it has taken the assignment") {
    world.job->begin(world.spec({0, 1}));
    world.events(0).on_lost({Errc::unavailable, "killed"});
    world.turn();
  }
  SECTION("unnoticed until it is to take the assignment") {
    world.starter.host(0).assignable = false;
    world.job->begin(world.spec({0, 1}));
  }
  CHECK(world.starter.started() == 3);
  CHECK_FALSE(world.starter.host(0).alive);
  CHECK(world.starter.host(2).spec.host == "a");
  CHECK_FALSE(world.job->state().generation.first_failure);
  world.run_ranks(2, Rank{0});
  world.run_ranks(1, Rank{1});
  CHECK(world.job->state().phase == Phase::running);
  CHECK(world.job->kept_agents() == 1);
}

TEST_CASE("standard input given during the handover reaches the agent that replaces a dead one") {
  World world;
  world.fail_generation();
  world.restart();
  world.job->begin(world.spec({0, 1}));
  world.job->feed_stdin("first ");
  world.events(0).on_lost({Errc::unavailable, "killed"});
  world.job->feed_stdin("second");
  world.job->close_stdin();
  world.turn();
  REQUIRE(world.starter.started() == 3);
  CHECK(world.starter.host(2).input == "first second");
  CHECK(world.calls(2) == Calls{"close stdin"});
  world.run_ranks(2, Rank{0});
  CHECK(world.starter.host(2).input == "first second");
}

TEST_CASE("an agent that takes its assignment gets standard input once") {
  World world;
  world.fail_generation();
  world.restart();
  world.job->begin(world.spec({0, 1}));
  world.job->feed_stdin("first ");
  world.run_ranks(0, Rank{0});
  world.job->feed_stdin("second");
  CHECK(world.starter.host(0).input == "first second");
}

TEST_CASE("an agent that dies after it has taken the assignment fails the generation") {
  World world;
  world.fail_generation();
  world.restart();
  world.job->begin(world.spec({0, 1}));
  world.run_ranks(0, Rank{0});
  world.events(0).on_lost({Errc::unavailable, "killed"});
  CHECK(world.starter.started() == 2);
  CHECK(world.job->state().generation.first_failure->kind == FailureKind::host_lost);
}

TEST_CASE("an agent that dies while other hosts' ranks run on does not fail the job") {
  World world;
  world.run_ranks(0, Rank{0});
  world.run_ranks(1, Rank{1});
  world.events(0).on_exit({.rank = Rank{0}});
  world.events(0).on_waiting(0);
  world.events(0).on_lost({Errc::unavailable, "killed"});
  CHECK(world.job->state().phase == Phase::running);
  world.events(1).on_exit({.rank = Rank{1}});
  world.events(1).on_waiting(0);
  CHECK(exit_code_of(world.job->state()) == 0);
}

TEST_CASE("a job that succeeds ends when the agents that waited have left") {
  World world;
  for (const std::size_t agent : {0, 1}) {
    const Rank rank{static_cast<int>(agent)};
    world.run_ranks(agent, rank);
    world.events(agent).on_exit({.rank = rank});
    world.events(agent).on_waiting(0);
  }
  CHECK(world.job->state().phase == Phase::finished);
  for (const std::size_t agent : {0, 1}) CHECK(world.calls(agent).back() == "release");
  world.events(0).on_finished(0);
  world.turn();
  CHECK(world.ended == 0);
  SECTION("as told") {
    world.events(1).on_finished(0);
  }
  SECTION("by dying") {
    world.events(1).on_lost({Errc::unavailable, "killed"});
  }
  SECTION("or not at all, when nobody waits any longer") {
    CHECK(world.job->stop_waiting());
    CHECK_FALSE(world.starter.host(1).alive);
  }
  world.turn();
  CHECK(world.ended == 1);
  CHECK(world.finished == 1);
  CHECK_FALSE(world.job->stop_waiting());
}

TEST_CASE("a signal between two generations sends the agents home, and then the job ends") {
  World world;
  world.fail_generation();
  SECTION("while the output is written") {
    world.job->signal(SIGINT);
  }
  SECTION("in the pause") {
    world.job->restart();
    world.job->signal(SIGINT);
  }
  SECTION("when a batch system signals the agents alone") {
    world.restart();
    world.events(0).on_end_asked(SIGINT);
  }
  for (const std::size_t agent : {0, 1}) {
    CHECK(world.calls(agent).back() == "release");
    CHECK(world.finished == 0);
    world.events(agent).on_finished(0);
  }
  world.turn();
  CHECK(world.finished == 1);
  CHECK(world.ended == 1);
  CHECK(exit_code_of(world.job->state()) == 128 + SIGINT);
}

TEST_CASE("agents that wait hear of a suspension, so that the silence does not end them") {
  World world;
  world.fail_generation();
  world.job->restart();
  for (const std::size_t agent : {0, 1}) world.calls(agent);
  world.job->suspend();
  world.job->resume();
  for (const std::size_t agent : {0, 1}) {
    CHECK(world.calls(agent) ==
          Calls{fmt::format("signal {}", SIGSTOP), fmt::format("signal {}", SIGCONT)});
  }
}

TEST_CASE("a signal during the handover stops the generation that begins") {
  World world;
  world.fail_generation();
  world.restart();
  world.job->begin(world.spec({0, 1}));
  world.job->signal(SIGINT);
  for (const std::size_t agent : {0, 1}) {
    CHECK(world.calls(agent).back() == "stop -1");
    world.events(agent).on_finished(0);
  }
  world.turn();
  CHECK(world.finished == 1);
  CHECK(exit_code_of(world.job->state()) == 128 + SIGINT);
}
