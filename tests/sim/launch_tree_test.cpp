// SPDX-License-Identifier: Apache-2.0
// Whole jobs over simulated hosts whose agents are started by other agents: the launcher's code and
// the code that passes frames on are the real ones.
#include <array>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "launcher/job/job.hpp"
#include "launcher/output/output.hpp"
#include "launcher/process/spawn.hpp"
#include "launcher/starters/tree/tree_starter.hpp"
#include "tests/support/fake_hosts.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

class Starting final : public Starter {
 public:
  Starting(TreeStarter& tree, Loop& loop) : tree_(tree), loop_(loop) {}

  std::string_view name() const override { return "simulated"; }

  Status probe() const override { return {}; }

  Result<std::unique_ptr<Agent>> start(const AgentSpec& spec, AgentEvents& events) override {
    return tree_.start(next_++, spec, events);
  }

 private:
  TreeStarter& tree_;
  Loop& loop_;
  std::size_t next_ = 0;
};

/// A job of one rank per host.
struct World {
  std::unique_ptr<Loop> loop = Loop::make().value();
  FakeHosts hosts{*loop};
  std::unique_ptr<TreeStarter> tree;
  std::unique_ptr<Starting> starter;
  std::optional<Output> output;
  std::optional<Job> job;
  int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  std::size_t from_here = 0;

  World(int count, std::size_t fanout) {
    static_cast<void>(raise_descriptor_limit());
    discovery::HostSet set;
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) {
      names.push_back(fmt::format("n{}", i));
      set.add({.name = names.back(), .slots = 1});
    }
    const auto placement = place(set, {.np = count}).value();
    const auto plan = plan_tree(std::vector<bool>(names.size(), true), fanout);
    tree = std::make_unique<TreeStarter>(
        *loop, plan, names,
        TreeWays{.from_here = [this](std::size_t host) -> Result<std::unique_ptr<Carrier>> {
                   ++from_here;
                   return hosts.reach(static_cast<std::uint32_t>(host));
                 },
                 .from_there = [](std::size_t) { return protocol::Reach{}; }});
    starter = std::make_unique<Starting>(*tree, *loop);
    output.emplace(*loop, OutputOptions{.out_fd = null, .err_fd = null},
                   std::vector<RankLabel>(names.size()), std::nullopt);
    std::vector<AgentSpec> agents;
    for (const auto& rank : placement.ranks) {
      WorkerIdentity identity{.rank = rank.rank, .size = count, .local_size = 1};
      agents.push_back({.host = names[rank.host],
                        .command = {"train"},
                        .ranks = {identity},
                        .held = true,
                        .heartbeat = 60s});
    }
    job.emplace(*loop, *starter, *output,
                JobSpec{.placement = placement, .agents = std::move(agents), .start_timeout = 100s},
                [this] { loop->stop(); });
  }

  ~World() {
    job.reset();
    close(null);
  }

  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const JobState& run() {
    job->start();
    loop->run();
    return job->state();
  }

  /// As run, and `host` dies when all ranks run.
  const JobState& run_and_kill(std::uint32_t host) {
    for (std::uint32_t i = 0; i < job->state().placement.hosts.size(); ++i) hosts.patient.insert(i);
    job->on_rank_started([this, host] {
      if (job->state().waiting == 0) loop->post([this, host] { hosts.kill(host); });
    });
    return run();
  }
};

}  // namespace

TEST_CASE("a job of 1,000 hosts starts through their agents and ends") {
  const auto fanout = static_cast<std::size_t>(GENERATE(1000, 32, 10));
  World world(1000, fanout);
  const auto& state = world.run();
  CHECK_FALSE(state.first_failure);
  CHECK(all_succeeded(state));
  CHECK(world.from_here == fanout);
  CHECK(world.hosts.most_branches <= fanout);
  CHECK(world.hosts.ended == 1000);
}

TEST_CASE("a long chain carries a job too") {
  World world(60, 1);
  CHECK(all_succeeded(world.run()));
  CHECK(world.hosts.most_branches == 1);
}

TEST_CASE("who cannot be reached from another host is started from here") {
  World world(100, 5);
  for (std::uint32_t host = 40; host < 100; ++host) world.hosts.unreachable.insert(host);
  CHECK(all_succeeded(world.run()));
  CHECK(world.from_here == 65);
}

TEST_CASE("the first failing rank is named from any depth") {
  World world(100, 3);
  for (std::uint32_t host = 0; host < 100; ++host) {
    if (host != 97) world.hosts.patient.insert(host);
  }
  world.hosts.exit_codes[97] = 7;
  const auto& state = world.run();
  REQUIRE(state.first_failure);
  CHECK(state.first_failure->rank == Rank{97});
  CHECK(exit_code_of(state) == 7);
  CHECK(world.hosts.alive() == 0);
}

TEST_CASE("of a lost agent and those behind it, it is the one to blame") {
  const auto host = static_cast<std::uint32_t>(GENERATE(0, 2, 3, 11, 39));
  World world(40, 3);
  const auto& state = world.run_and_kill(host);
  REQUIRE(state.first_failure);
  CHECK(state.first_failure->kind == FailureKind::host_lost);
  CHECK(state.first_failure->host == host);
  CHECK(world.hosts.alive() == 0);
}
