// SPDX-License-Identifier: Apache-2.0
// Whole jobs over simulated hosts whose agents are started by other agents: the launcher's code and
// the code that relays frames are the real ones.
#include <array>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "launcher/job/job_driver.hpp"
#include "launcher/output/job_output.hpp"
#include "launcher/process/spawn.hpp"
#include "launcher/starters/tree/tree_starter.hpp"
#include "tests/support/fake_hosts.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

class Starting final : public Starter {
 public:
  explicit Starting(TreeStarter& tree) : tree_(tree) {}

  std::string_view name() const override { return "simulated"; }

  Status probe() const override { return {}; }

  Result<std::unique_ptr<Agent>> start(const AgentSpec& spec, AgentEvents& events) override {
    return tree_.start(std::stoul(spec.host.substr(1)), spec, events);
  }

 private:
  TreeStarter& tree_;
};

/// A job of one rank per host.
struct World {
  std::unique_ptr<Loop> loop = Loop::make().value();
  FakeHosts hosts{*loop};
  std::unique_ptr<TreeStarter> tree;
  std::unique_ptr<Starting> starter;
  std::optional<JobOutput> output;
  std::optional<JobDriver> job;
  int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  std::size_t from_here = 0;
  std::function<GenerationSpec()> make_spec;
  /// Plans the next generation.
  Task on_plan = [this] { job->begin(make_spec()); };

  World(int count, std::size_t fanout, const char* restarts = "0") {
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
    starter = std::make_unique<Starting>(*tree);
    output.emplace(*loop, OutputOptions{.out_fd = null, .err_fd = null},
                   std::vector<RankLabel>(names.size()), std::nullopt);
    make_spec = [this, count, names, placement] { return spec_of(count, names, placement); };
    job.emplace(
        *loop,
        JobSpec{.start_timeout = 100s, .policy = RestartPolicy::parse(restarts, "any").value()},
        make_spec(),
        JobHandlers{.on_ended = [this] { job->restart(); },
                    .on_plan = [this] { on_plan(); },
                    .on_finished = [this] { loop->stop(); }});
  }

  GenerationSpec spec_of(int count, const std::vector<std::string>& names,
                         const Placement& placement) {
    std::vector<AgentSpec> agents;
    for (const auto& rank : placement.ranks) {
      WorkerIdentity identity{.rank = rank.rank, .size = count, .local_size = 1};
      agents.push_back({.host = names[rank.host],
                        .command = {"train"},
                        .ranks = {identity},
                        .held = true,
                        .heartbeat = 60s});
    }
    std::vector<std::optional<std::size_t>> same_as(names.size());
    for (std::size_t host = 0; host < names.size(); ++host) same_as[host] = host;
    return {.placement = placement,
            .agents = std::move(agents),
            .starter = std::shared_ptr<Starter>(std::shared_ptr<void>(), &*starter),
            .output = &*output,
            .same_as = std::move(same_as)};
  }

  ~World() {
    job.reset();
    close(null);
  }

  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Result<std::unique_ptr<Agent>> start_agent(const AgentSpec& spec, AgentEvents& events) {
    return starter->start(spec, events);
  }

  const JobState& run() {
    job->start();
    loop->run();
    return job->state();
  }

  /// As run(), but `host` is killed when all ranks run.
  const JobState& run_and_kill(std::uint32_t host) {
    for (std::uint32_t i = 0; i < job->state().generation.placement.hosts.size(); ++i)
      hosts.long_running.insert(i);
    job->on_rank_started([this, host] {
      if (job->state().generation.waiting == 0) loop->post([this, host] { hosts.kill(host); });
    });
    return run();
  }
};

}  // namespace

TEST_CASE("a job of 1,000 hosts starts through their agents and ends") {
  const auto fanout = static_cast<std::size_t>(GENERATE(1000, 32, 10));
  World world(1000, fanout);
  const auto& state = world.run();
  CHECK_FALSE(state.generation.first_failure);
  CHECK(state.generation.all_succeeded());
  CHECK(world.from_here == fanout);
  CHECK(world.hosts.most_children <= fanout);
  CHECK(world.hosts.ended == 1000);
}

TEST_CASE("a job starts through a chain of 60 agents") {
  World world(60, 1);
  CHECK(world.run().generation.all_succeeded());
  CHECK(world.hosts.most_children == 1);
}

TEST_CASE("a host that no other host can reach is started by the launcher") {
  World world(100, 5);
  for (std::uint32_t host = 40; host < 100; ++host) world.hosts.unreachable.insert(host);
  CHECK(world.run().generation.all_succeeded());
  CHECK(world.from_here == 65);
}

TEST_CASE("the first failing rank is named through a tree of any depth") {
  World world(100, 3);
  for (std::uint32_t host = 0; host < 100; ++host) {
    if (host != 97) world.hosts.long_running.insert(host);
  }
  world.hosts.exit_codes[97] = 7;
  const auto& state = world.run();
  REQUIRE(state.generation.first_failure);
  CHECK(state.generation.first_failure->rank == Rank{97});
  CHECK(exit_code_of(state) == 7);
  CHECK(world.hosts.alive() == 0);
}

TEST_CASE("the loss of an agent blames that agent, not the agents behind it") {
  const auto host = static_cast<std::uint32_t>(GENERATE(0, 2, 3, 11, 39));
  World world(40, 3);
  const auto& state = world.run_and_kill(host);
  REQUIRE(state.generation.first_failure);
  CHECK(state.generation.first_failure->kind == FailureKind::host_lost);
  CHECK(state.generation.first_failure->host == host);
  CHECK(world.hosts.alive() == 0);
}

TEST_CASE("a restart keeps all agents of a tree and their connections") {
  World world(100, 3, "2");
  world.hosts.exit_codes[97] = 7;
  world.on_plan = [&] {
    world.hosts.exit_codes.clear();
    world.job->begin(world.make_spec());
  };
  const auto& state = world.run();
  CHECK(exit_code_of(state) == 0);
  CHECK(state.generation.epoch == Epoch{2});
  CHECK(world.job->kept_agents() == 100);
  CHECK(world.hosts.begun == 100);
  CHECK(world.hosts.alive() == 0);
}

TEST_CASE("an agent of a tree that dies between two generations is replaced with all behind it") {
  const auto host = static_cast<std::uint32_t>(GENERATE(0, 5, 99));
  const bool noticed = GENERATE(false, true);
  World world(100, 3, "2");
  world.hosts.exit_codes[97] = 7;
  Subscription later;
  world.on_plan = [&] {
    world.hosts.exit_codes.clear();
    world.hosts.kill(host);
    const auto begin = [&] { world.job->begin(world.make_spec()); };
    if (!noticed) return begin();
    later = world.loop->after(50ms, begin);
  };
  const auto& state = world.run();
  CHECK(exit_code_of(state) == 0);
  CHECK(state.generation.epoch == Epoch{2});
  CHECK(world.job->kept_agents() < 100);
  CHECK(world.job->kept_agents() + world.hosts.begun == 200);
  CHECK(world.hosts.alive() == 0);
}

namespace {

/// The agent of one host of an elastic job, and its news.
class ElasticHost final : public AgentEvents {
 public:
  ElasticHost(World& world, int number) : loop_(*world.loop) {
    spec_.host = fmt::format("n{}", number);
    spec_.command = {"train"};
    spec_.elastic = spec_.held = true;
    spec_.slots = 2;
    agent = world.start_agent(spec_, *this).value();
  }

  void on_ready(const HostFacts&) override { agent->begin(spec_); }

  void on_control_group(const ControlGroupInfo&) override {}

  void on_note(std::string_view) override {}

  void on_started(Rank rank, int) override { news.push_back(fmt::format("started {}", rank)); }

  void on_spawn_failed(Rank, const Error&) override {}

  void on_output(Rank, Stream, std::string_view) override {}

  void on_exit(const RankExit& exit) override {
    news.push_back(fmt::format("exit {}", exit.rank));
    loop_.stop();
  }

  void on_called(const std::vector<elastic::MembershipCall>&) override {}

  void on_stdin_room() override {}

  void on_end_asked(int) override {}

  void on_timeline(const SavedTimeline&) override {}

  void on_answer(std::size_t, const Answer&) override {}

  void on_waiting(int) override {}

  void on_finished(int) override { end("finished"); }

  void on_lost(const Error& error) override { end(error.message); }

  std::unique_ptr<Agent> agent;
  std::vector<std::string> news;

 private:
  void end(std::string how) {
    news.push_back(std::move(how));
    loop_.stop();
  }

  Loop& loop_;
  AgentSpec spec_;
};

}  // namespace

TEST_CASE("workers of an elastic job come and go at the end of a chain of agents") {
  World world(4, 1);
  std::vector<std::unique_ptr<ElasticHost>> hosts;
  for (int i = 0; i < 4; ++i) hosts.push_back(std::make_unique<ElasticHost>(world, i));
  auto& last = *hosts.back();
  using News = std::vector<std::string>;
  last.agent->spawn({{.worker = 5}});
  last.agent->end_worker(Rank{5});
  world.loop->run();
  CHECK(last.news == News{"started 5", "exit 5"});
  for (auto& host : hosts) host->agent->close();
  // An agent leaves when the agents behind it have left.
  for (int i = 0; i < 4; ++i) world.loop->run();
  CHECK(last.news == News{"started 5", "exit 5", "finished"});
  for (int i = 0; i < 3; ++i) CHECK(hosts[static_cast<std::size_t>(i)]->news == News{"finished"});
  CHECK(world.hosts.alive() == 0);
}
