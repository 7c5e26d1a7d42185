// SPDX-License-Identifier: Apache-2.0
// Agents that this test starts itself, as another system would: they dial in and own a rank each.
#include "launcher/starters/dial_in/dial_in_starter.hpp"

#include <cstdlib>
#include <map>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

/// Starts `horo-agent --dial-in` for `rank` of `size`. Returns its process number.
pid_t start_agent(int rank, int size, const Environment& variables) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  setenv("HORO_DIAL_IN_RANK", std::to_string(rank).c_str(), 1);
  setenv("HORO_DIAL_IN_SIZE", std::to_string(size).c_str(), 1);
  execl(HORO_TEST_AGENT, HORO_TEST_AGENT, "--dial-in", nullptr);
  _exit(127);
}

/// A job of two ranks on one host, and its agent's news.
class DialInWorld final : public AgentEvents {
 public:
  /// `claimed_size`: the number of ranks that the other system believes in.
  DialInWorld(const char* script, int claimed_size) {
    const auto placement = place(discovery::HostSet({{"localhost", 2}}), {.np = 2}).value();
    starter = make_dial_in_starter(
        *loop, {.placement = placement, .started_by = "a test", .listen_on = ListenOn::loopback},
        [this, claimed_size](const Environment& variables) {
          for (const int rank : {0, 1}) pids.push_back(start_agent(rank, claimed_size, variables));
          return Status();
        });
    AgentSpec spec{.host = "localhost", .command = {"/bin/sh", "-c", script}, .directory = "/"};
    spec.failure_grace = spec.grace = 5s;
    for (const int rank : {0, 1}) {
      spec.ranks.push_back({.rank = Rank{rank},
                            .size = 2,
                            .local_rank = LocalRank{rank},
                            .local_size = 2,
                            .job_id = "dial-in-test"});
    }
    agent = starter->start(spec, *this).value();
    const auto limit = loop->after(20s, [this] { loop->stop(); });
    loop->run();
    agent.reset();
    for (const pid_t pid : pids) waitpid(pid, nullptr, 0);
  }

  void on_ready(const HostFacts&) override {}

  void on_control_group(const ControlGroupInfo&) override {}

  void on_note(std::string_view) override {}

  void on_started(Rank, int) override { ++started; }

  void on_spawn_failed(Rank, const Error& error) override { failure = error.message; }

  void on_output(Rank rank, Stream, std::string_view bytes) override { text[rank] += bytes; }

  void on_exit(const RankExit& exit) override {
    exits[exit.rank] = exit.wait_status;
    if (exit.wait_status != 0 && agent)
      agent->stop({.rank = exit.rank, .cause = LossCause::exited, .detail = 1}, "localhost");
  }

  void on_called(const std::vector<elastic::MembershipCall>&) override {}

  void on_stdin_room() override {}

  void on_waiting(int) override { FAIL("an agent of another system waits for an assignment"); }

  void on_end_asked(int) override {}

  void on_timeline(const SavedTimeline&) override {}

  void on_answer(std::size_t, const Answer&) override {}

  void on_finished(int) override {
    finished = true;
    loop->stop();
  }

  void on_lost(const Error& error) override {
    failure = error.message;
    loop->stop();
  }

  std::unique_ptr<Loop> loop = Loop::make().value();
  std::unique_ptr<Starter> starter;
  std::unique_ptr<Agent> agent;
  std::vector<pid_t> pids;
  std::map<Rank, std::string> text;
  std::map<Rank, int> exits;
  std::string failure;
  int started = 0;
  bool finished = false;
};

}  // namespace

TEST_CASE("agents that another system starts dial in, run their ranks and report their ends") {
  const DialInWorld world("echo rank $HORO_RANK", 2);
  CHECK(world.started == 2);
  CHECK(world.text.at(Rank{0}) == "rank 0\n");
  CHECK(world.text.at(Rank{1}) == "rank 1\n");
  CHECK(world.exits == std::map<Rank, int>{{Rank{0}, 0}, {Rank{1}, 0}});
  CHECK(world.finished);
  CHECK(world.failure.empty());
}

TEST_CASE("when a rank fails and the job is stopped, the other rank's agent ends its rank") {
  const DialInWorld world("test $HORO_RANK = 0 || exit 7; exec sleep 60", 2);
  CHECK(WEXITSTATUS(world.exits.at(Rank{1})) == 7);
  CHECK(WIFSIGNALED(world.exits.at(Rank{0})));
  CHECK(world.finished);
}

TEST_CASE("an agent that claims a rank of another job fails the start") {
  const DialInWorld world("exit 0", 3);
  CHECK(world.started == 0);
  CHECK_THAT(world.failure, Catch::Contains("a test has started rank") && Catch::Contains("of 3"));
  CHECK(world.finished);
}

TEST_CASE("a job whose ranks another system starts cannot be elastic") {
  DialInWorld world("true", 2);
  AgentSpec spec{.host = "localhost", .command = {"true"}, .directory = "/"};
  spec.elastic = true;
  spec.slots = 2;
  const auto agent = world.starter->start(spec, world);
  REQUIRE_FALSE(agent);
  CHECK(agent.error().code == Errc::unsupported);
  CHECK_THAT(agent.error().message, Catch::Contains("a test starts a fixed number of ranks"));
}
