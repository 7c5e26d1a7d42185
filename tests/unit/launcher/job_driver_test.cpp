// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/job_driver.hpp"

#include <array>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "launcher/output/job_output.hpp"
#include "tests/support/fake_starter.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

/// A job over fake agents, with a pipe for a screen.
struct World {
  std::unique_ptr<Loop> loop = Loop::make().value();
  std::array<int, 2> screen{};
  FakeStarter starter;
  std::optional<JobOutput> output;
  std::optional<JobDriver> job;
  int finished = 0;

  explicit World(
      std::vector<discovery::Host> hosts, Duration start_timeout = 10s,
      std::optional<Duration> time_limit = {},
      std::function<Status(std::vector<AgentSpec>&, const std::vector<HostFacts>&)> complete = {}) {
    REQUIRE(pipe2(screen.data(), O_CLOEXEC | O_NONBLOCK) == 0);
    const discovery::HostSet set(hosts);
    const auto placement = place(set, {.np = static_cast<int>(set.slots())}).value();
    output.emplace(*loop, OutputOptions{.out_fd = screen[1], .err_fd = screen[1]},
                   std::vector<RankLabel>(placement.ranks.size()), std::nullopt);
    std::vector<AgentSpec> agents;
    for (const auto& host : placement.hosts) agents.push_back({.host = host.name});
    job.emplace(
        *loop, JobSpec{.start_timeout = start_timeout, .time_limit = time_limit},
        GenerationSpec{.placement = placement,
                       .agents = std::move(agents),
                       .complete = std::move(complete),
                       .starter = std::shared_ptr<Starter>(std::shared_ptr<void>(), &starter),
                       .output = &*output},
        JobHandlers{.on_ended = {}, .on_finished = [this] {
                      ++finished;
                      loop->stop();
                    }});
  }

  ~World() {
    job.reset();
    for (const int fd : screen) close(fd);
  }

  AgentEvents& events(std::size_t host = 0) { return *starter.host(host).events; }

  /// Runs the loop until the job has finished; a test that hangs ends by its time limit.
  void run() { loop->run(); }

  std::string text() {
    std::array<char, 4096> block{};
    const auto n = read(screen[0], block.data(), block.size());
    return {block.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
  }
};

using Calls = std::vector<std::string>;

}  // namespace

TEST_CASE("a job ends one turn of the loop after its last agent has finished") {
  World world({{"a", 2}});
  world.job->start();
  REQUIRE(world.starter.started() == 1);
  world.events().on_started(Rank{0}, 10);
  world.events().on_started(Rank{1}, 11);
  world.events().on_output(Rank{1}, Stream::out, "hi");
  world.events().on_exit({.rank = Rank{0}});
  world.events().on_exit({.rank = Rank{1}});
  CHECK(world.text() == "hi");
  world.events().on_finished(0);
  CHECK(world.finished == 0);
  world.run();
  CHECK(world.finished == 1);
  CHECK(exit_code_of(world.job->state()) == 0);
  CHECK(world.starter.host(0).calls.empty());
}

TEST_CASE("the first failure stops every host once, naming the rank") {
  World world({{"a", 1}, {"b", 1}});
  world.job->start();
  world.events(1).on_exit({.rank = Rank{1}, .wait_status = 7 << 8});
  CHECK(world.starter.host(0).calls == Calls{"stop 1"});
  CHECK(world.starter.host(1).calls == Calls{"stop 1"});
  world.events(0).on_exit({.rank = Rank{0}, .wait_status = SIGTERM});
  world.events(0).on_finished(0);
  world.events(1).on_finished(0);
  world.run();
  CHECK(exit_code_of(world.job->state()) == 7);
  CHECK(world.starter.host(0).calls.size() == 1);
}

TEST_CASE("the first signal stops, the second kills; user signals are passed on") {
  World world({{"a", 1}});
  world.job->start();
  world.events().on_started(Rank{0}, 10);
  world.job->signal(SIGUSR1);
  world.job->signal(SIGINT);
  world.job->signal(SIGINT);
  CHECK(world.starter.host(0).calls == Calls{fmt::format("signal {}", SIGUSR1), "stop -1", "kill"});
}

TEST_CASE("an agent that cannot be started fails the job, and the other hosts end with it") {
  const int which = GENERATE(0, 1);
  World world({{"a", 1}, {"b", 1}});
  world.starter.failure = {which, Error{Errc::not_found, "no horo-agent"}};
  world.job->start();
  CHECK(world.job->state().generation.first_failure->kind == FailureKind::host_lost);
  REQUIRE(world.starter.started() == 1);
  CHECK(!world.starter.host(0).calls.empty());
  world.events(0).on_finished(0);
  world.run();
  CHECK(exit_code_of(world.job->state()) == 125);
}

TEST_CASE("ranks that do not start in time fail the job") {
  World world({{"a", 1}}, 1ms);
  world.job->start();
  const auto end = world.loop->after(20ms, [&] { world.events().on_finished(0); });
  world.run();
  CHECK(world.job->state().generation.first_failure->kind == FailureKind::start_timeout);
  CHECK(world.starter.host(0).calls == Calls{"stop -1"});
}

TEST_CASE("held ranks begin when all hosts are ready, with the facts of all hosts") {
  World world({{"a", 1}, {"b", 1}}, 10s, {}, [](auto& agents, const auto& facts) {
    for (auto& agent : agents) agent.directory = facts[0].address + " " + facts[1].address;
    return Status();
  });
  world.job->start();
  world.events(1).on_ready({.address = "10.0.0.2"});
  CHECK(world.job->ready_hosts() == 1);
  CHECK(world.starter.host(1).calls.empty());
  world.events(0).on_ready({.address = "10.0.0.1"});
  for (std::size_t host = 0; host < 2; ++host) {
    CHECK(world.starter.host(host).calls == Calls{"begin"});
    CHECK(world.starter.host(host).spec.directory == "10.0.0.1 10.0.0.2");
  }
}

TEST_CASE("a description that cannot be completed fails the job before any rank starts") {
  World world({{"a", 1}, {"b", 1}}, 10s, {},
              [](auto&, const auto&) { return Status(fail(Errc::unavailable, "no address")); });
  world.job->start();
  for (std::size_t host = 0; host < 2; ++host) world.events(host).on_ready({});
  for (std::size_t host = 0; host < 2; ++host) {
    CHECK(world.starter.host(host).calls == Calls{"stop 0"});
    world.events(host).on_finished(0);
  }
  world.run();
  CHECK(exit_code_of(world.job->state()) == 1);
}

TEST_CASE("a start timeout names each late host and its step") {
  World world({{"a", 1}, {"b", 1}, {"c", 1}}, 1ms);
  world.job->start();
  world.starter.host(1).step = "looking up 'b'";
  const auto end = world.loop->after(20ms, [&] {
    for (std::size_t host = 0; host < 3; ++host) world.events(host).on_finished(0);
  });
  world.run();
  CHECK(world.job->state().generation.first_failure->error.message == "host b: looking up 'b'");
}

TEST_CASE("the start timeout counts from the start and stops when all ranks run") {
  World world({{"a", 1}}, 1ms, 10ms);
  world.job->start();
  world.events().on_started(Rank{0}, 10);
  const auto end = world.loop->after(30ms, [&] {
    world.events().on_exit({.rank = Rank{0}, .wait_status = SIGTERM});
    world.events().on_finished(0);
  });
  world.run();
  CHECK(world.job->state().generation.first_failure->kind == FailureKind::time_limit);
  CHECK(exit_code_of(world.job->state()) == 124);
}

TEST_CASE("the clocks of a suspended job stand still") {
  World world({{"a", 1}}, 1ms, 1ms);
  world.job->start();
  world.job->suspend();
  world.job->suspend();
  const auto waking = world.loop->after(20ms, [&] {
    CHECK(world.job->state().phase == Phase::starting);
    world.job->resume();
  });
  const auto end = world.loop->after(60ms, [&] { world.events().on_finished(0); });
  world.run();
  CHECK(world.starter.host(0).calls ==
        Calls{fmt::format("signal {}", SIGSTOP), fmt::format("signal {}", SIGCONT), "stop -1"});
  CHECK(world.job->state().generation.first_failure->kind == FailureKind::start_timeout);
}

TEST_CASE("a rank's agent is told exactly how much of its output was delivered") {
  World world({{"a", 1}, {"b", 1}});
  world.job->start();
  const auto line = std::string(1000, 'x') + "\n";
  const auto write = [&] { world.events(1).on_output(Rank{1}, Stream::out, line); };
  for (int i = 0; i < 200; ++i) {
    write();
    while (!world.text().empty()) {
    }
  }
  const auto& calls = world.starter.host(1).calls;
  CHECK(calls == Calls(3, "taken 66066 of 1"));
  // Nobody reads, so only what fits the pipe is written.
  for (int i = 0; i < 200; ++i) write();
  CHECK(calls.size() <= 4);
  CHECK(world.starter.host(0).calls.empty());
}

TEST_CASE("standard input goes to the host of rank 0") {
  World world({{"a", 1}, {"b", 1}});
  world.job->start();
  world.job->feed_stdin("text");
  world.job->close_stdin();
  CHECK(world.starter.host(0).input == "text");
  CHECK(world.starter.host(0).calls == Calls{"close stdin"});
  CHECK(world.starter.host(1).calls.empty());
}

TEST_CASE("destroying a job destroys its agents") {
  World world({{"a", 1}});
  world.job->start();
  world.job.reset();
  CHECK(!world.starter.host(0).alive);
}

TEST_CASE("the last incomplete lines of a lost host's ranks are shown") {
  World world({{"a", 1}});
  world.job->start();
  world.events().on_started(Rank{0}, 10);
  world.events().on_output(Rank{0}, Stream::out, "no end");
  CHECK(world.text().empty());
  world.events().on_lost({Errc::unavailable, "gone"});
  CHECK(world.text() == "no end");
}
