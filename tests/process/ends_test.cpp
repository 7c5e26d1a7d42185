// SPDX-License-Identifier: Apache-2.0
// How jobs end when their ranks succeed or fail.
#include "agent_job.hpp"

#include <csignal>
#include <fcntl.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>

#include "base/board_header.hpp"

using namespace horo;
using namespace horo::test;

namespace {

/// Runs a whole job, after which none of its processes is left.
struct Ran {
  std::unique_ptr<Loop> loop = make_loop();
  Job job{*loop};

  explicit Ran(launcher::AgentSpec spec) {
    REQUIRE(job.start(std::move(spec)));
    REQUIRE(job.run());
    CHECK(living_with(job.marker()).empty());
    REQUIRE(job.control_group);
    CHECK(job.control_group->path.empty() != job.control_group->reason.empty());
    if (!job.control_group->path.empty()) CHECK(access(job.control_group->path.c_str(), F_OK) != 0);
  }

  explicit Ran(int ranks, std::vector<std::string> actions)
      : Ran(acting(ranks, std::move(actions))) {}

  static launcher::AgentSpec acting(int ranks, std::vector<std::string> actions) {
    actions.insert(actions.begin(), actor());
    return spec_for(ranks, std::move(actions));
  }

  const launcher::RankExit& exit(int rank) { return job.exits.at(Rank{rank}); }
};

int code_of(const launcher::RankExit& exit) {
  return WIFEXITED(exit.wait_status) ? WEXITSTATUS(exit.wait_status) : -1;
}

int signal_of(const launcher::RankExit& exit) {
  return WIFSIGNALED(exit.wait_status) ? WTERMSIG(exit.wait_status) : 0;
}

}  // namespace

TEST_CASE("every rank's output arrives before its exit, and the job succeeds") {
  Ran run(4, {"say=hello", "err=there"});
  CHECK(run.job.survivors == 0);
  REQUIRE(run.job.exits.size() == 4);
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(run.job.out[Rank{rank}] == "hello");
    CHECK(run.job.err[Rank{rank}] == "there");
    CHECK(code_of(run.exit(rank)) == 0);
    CHECK_FALSE(run.exit(rank).attached);
    CHECK(run.exit(rank).lived > Duration::zero());
  }
}

TEST_CASE("exit codes and signals are reported exactly") {
  for (const int code : {1, 3, 255}) {
    Ran run(1, {fmt::format("exit={}", code)});
    CHECK(code_of(run.exit(0)) == code);
  }
  for (const int number : {SIGKILL, SIGSEGV, SIGTERM}) {
    Ran run(1, {fmt::format("die={}", number)});
    CHECK(signal_of(run.exit(0)) == number);
    CHECK_FALSE(run.exit(0).oom_killed);
  }
}

TEST_CASE("the first failure ends ranks that never attached, by SIGTERM") {
  Ran run(4, {"only=2", "exit=7", "wait"});
  CHECK(run.job.survivors == 0);
  CHECK(run.job.exit_order.front() == Rank{2});
  CHECK(code_of(run.exit(2)) == 7);
  // A rank that was not started before the failure has no exit.
  for (const auto& [rank, exit] : run.job.exits) {
    if (rank != Rank{2}) CHECK(signal_of(exit) == SIGTERM);
  }
}

TEST_CASE("a rank that ignores SIGTERM gets SIGKILL after the grace period") {
  auto spec = Ran::acting(2, {"ignore-term", "say=up", "only=0", "exit=1", "wait"});
  spec.grace = 50ms;
  std::swap(spec.ranks[0].rank, spec.ranks[1].rank);  // The failing one starts last.
  Ran run(std::move(spec));
  CHECK(run.job.survivors == 0);
  CHECK(code_of(run.exit(0)) == 1);
  const auto how = signal_of(run.exit(1));
  CHECK((how == SIGKILL || how == SIGTERM));  // SIGTERM: it came before it was ignored.
}

TEST_CASE("a stopped rank that would end at SIGTERM does not outlive the job") {
  auto loop = make_loop();
  Job job(*loop);
  REQUIRE(job.start(Ran::acting(1, {"say=up", "stop", "wait"})));
  REQUIRE(job.run_until([&] { return !job.out.empty(); }));
  job.agent().stop({.rank = Rank{-1}, .cause = LossCause::aborted, .detail = 0}, "testhost");
  REQUIRE(job.run());
  CHECK(signal_of(job.exits.at(Rank{0})) == SIGTERM);
  CHECK(living_with(job.marker()).empty());
}

TEST_CASE("forked and escaped descendants end with the job") {
  for (const char* how : {"fork", "escape"}) {
    Ran run(2, {how, "say=done"});
    CHECK(run.job.survivors == 0);
    REQUIRE(run.job.exits.size() == 2);
    CHECK(code_of(run.exit(0)) == 0);
    CHECK(code_of(run.exit(1)) == 0);
  }
}

TEST_CASE("a descendant that holds the output open does not delay the exit") {
  Ran run(1, {"fork", "escape", "say=last words", "exit=3"});
  CHECK(run.job.out[Rank{0}] == "last words");
  CHECK(code_of(run.exit(0)) == 3);
}

TEST_CASE("a descendant that forks and ends without pause does not escape") {
  for (int i = 0; i < 5; ++i) {
    Ran run(1, {"move-on", "say=done"});
    CHECK(run.job.survivors == 0);
    CHECK(code_of(run.exit(0)) == 0);
  }
}

TEST_CASE(
    "a descendant whose first thread has ended is not taken for a zombie, and ends with the job") {
  auto loop = make_loop();
  Job job(*loop);
  REQUIRE(job.start(Ran::acting(1, {"headless", "wait"})));
  REQUIRE(job.run_until([&] { return !job.out.empty(); }));
  const int headless = std::stoi(job.out.at(Rank{0}));
  REQUIRE(::kill(headless, 0) == 0);
  ::kill(job.pids.at(Rank{0}), SIGKILL);
  REQUIRE(job.run());
  CHECK(job.survivors == 0);
  CHECK(::kill(headless, 0) != 0);
}

TEST_CASE("an agent answers while it waits for processes that cannot be killed") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return;  // Their runtime has to be the first library that is loaded.
#endif
  const auto spare = fmt::format("/tmp/horo-test-spare-{}", getpid());
  close(open(spare.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  setenv("LD_PRELOAD", HORO_TEST_SPARE, 1);
  setenv("HORO_SPARE", spare.c_str(), 1);
  auto loop = make_loop();
  Job job(*loop);
  const auto started = job.start(Ran::acting(1, {"fork", "say=done"}));
  for (const char* name : {"LD_PRELOAD", "HORO_SPARE"}) unsetenv(name);
  REQUIRE(started);
  REQUIRE(job.run_until([&] { return !job.exits.empty(); }));
  CHECK_FALSE(job.over());
  CHECK(job.agent().ask(0, launcher::Look{}));
  REQUIRE(job.run_until([&] { return job.answers != 0; }));
  CHECK_FALSE(job.over());
  CHECK_FALSE(living_with(job.marker()).empty());
  unlink(spare.c_str());
  REQUIRE(job.run());
  CHECK(job.survivors == 0);
  CHECK(living_with(job.marker()).empty());
}

TEST_CASE("orphans that have ended are reaped while the job runs") {
  auto loop = make_loop();
  Job job(*loop);
  REQUIRE(job.start(Ran::acting(2, {"orphans", "say=up", "wait"})));
  REQUIRE(job.run_until([&] { return job.out.size() == 2; }));
  const int agent = parent_of(job.pids.at(Rank{0}));
  CHECK(eventually([&] { return children_of(agent).size() == 2; }));
}

TEST_CASE("a rank that closes its output runs on and is still supervised") {
  auto loop = make_loop();
  Job job(*loop);
  REQUIRE(job.start(Ran::acting(2, {"say=x", "close-out", "only=1", "exit=5", "wait"})));
  REQUIRE(job.run());
  CHECK(code_of(job.exits.at(Rank{1})) == 5);
  CHECK(living_with(job.marker()).empty());
}

namespace {

/// Two attached ranks; rank 0 ends with `code` once both are.
std::unique_ptr<Job> ran_attached(Loop& loop, int code) {
  auto job = std::make_unique<Job>(loop);
  auto spec = Ran::acting(2, {"attach", "say=up:", "only=0", "echo", "only=0",
                              fmt::format("exit={}", code), "await-poison", "ack", "detach"});
  spec.stdin_policy = launcher::StdinPolicy::rank0;
  REQUIRE(job->start(std::move(spec)));
  REQUIRE(job->run_until([&] { return job->out.size() == 2; }));
  job->agent().close_stdin();
  REQUIRE(job->run());
  CHECK(job->survivors == 0);
  CHECK(living_with(job->marker()).empty());
  return job;
}

}  // namespace

TEST_CASE("attached ranks see the poison and exit by themselves") {
  auto loop = make_loop();
  const auto job = ran_attached(*loop, 4);
  CHECK(code_of(job->exits.at(Rank{0})) == 4);
  CHECK(job->exits.at(Rank{0}).attached);
  CHECK(job->out[Rank{1}] == "up:testhost: rank 0 exited with code 4");
  CHECK(code_of(job->exits.at(Rank{1})) == 0);
  CHECK(job->exit_order == std::vector{Rank{0}, Rank{1}});
}

TEST_CASE("an exit with code 0 while attached is a failure") {
  auto loop = make_loop();
  const auto job = ran_attached(*loop, 0);
  CHECK(code_of(job->exits.at(Rank{0})) == 0);
  CHECK(job->exits.at(Rank{0}).undetached);
  CHECK(job->out[Rank{1}] == "up:testhost: rank 0 exited with code 0");
  CHECK_FALSE(job->exits.at(Rank{1}).undetached);
}

TEST_CASE("an attached rank that does not acknowledge the poison within a second is killed") {
  auto loop = make_loop();
  Job job(*loop);
  auto spec = Ran::acting(2, {"attach", "say=up", "only=0", "stop", "wait"});
  REQUIRE(job.start(std::move(spec)));
  REQUIRE(job.run_until([&] { return job.out.size() == 2; }));
  ::kill(job.pids.at(Rank{1}), SIGUSR1);  // Its default action ends it.
  REQUIRE(job.run());
  CHECK(signal_of(job.exits.at(Rank{1})) == SIGUSR1);
  CHECK(signal_of(job.exits.at(Rank{0})) == SIGKILL);
  CHECK(job.exits.at(Rank{0}).lived < 10s);
  CHECK(living_with(job.marker()).empty());
}

TEST_CASE("an attached rank has the release timeout to acknowledge the poison") {
  auto loop = make_loop();
  Job job(*loop);
  // Rank 0 acknowledges only when standard input ends, which is long after one second.
  auto spec = Ran::acting(
      2, {"attach", "say=up", "only=0", "echo", "only=0", "ack", "only=0", "exit=6", "wait"});
  spec.stdin_policy = launcher::StdinPolicy::rank0;
  spec.release_timeout = 60s;
  REQUIRE(job.start(std::move(spec)));
  REQUIRE(job.run_until([&] { return job.out.size() == 2; }));
  ::kill(job.pids.at(Rank{1}), SIGKILL);
  REQUIRE(job.run_until([&] { return job.exits.contains(Rank{1}); }));
  const auto later = loop->after(1500ms, [&] { job.agent().close_stdin(); });
  REQUIRE(job.run());
  CHECK(code_of(job.exits.at(Rank{0})) == 6);
}

TEST_CASE("a rank that spoils the head of the board and fails is named, and the job ends") {
  auto loop = make_loop();
  Job job(*loop);
  auto spec = Ran::acting(2, {"attach", "say=up", "only=0", "echo", "only=0", "overwrite-size",
                              "only=0", "shrink-board", "only=0", "exit=5", "ack", "wait"});
  spec.stdin_policy = launcher::StdinPolicy::rank0;
  spec.failure_grace = 100ms;
  REQUIRE(job.start(std::move(spec)));
  REQUIRE(job.run_until([&] { return job.out.size() == 2; }));
  job.agent().close_stdin();
  REQUIRE(job.run());
  CHECK(code_of(job.exits.at(Rank{0})) == 5);
  CHECK(job.out[Rank{0}] == "up");
  CHECK(signal_of(job.exits.at(Rank{1})) == SIGTERM);
  CHECK(job.exit_order == std::vector{Rank{0}, Rank{1}});
  CHECK(living_with(job.marker()).empty());
}

TEST_CASE("attached ranks that do not end get SIGTERM after the failure grace") {
  auto loop = make_loop();
  Job job(*loop);
  auto spec = Ran::acting(2, {"attach", "ack", "say=up", "wait"});
  spec.failure_grace = 20ms;
  REQUIRE(job.start(std::move(spec)));
  REQUIRE(job.run_until([&] { return job.out.size() == 2; }));
  ::kill(job.pids.at(Rank{0}), SIGKILL);
  REQUIRE(job.run());
  CHECK(signal_of(job.exits.at(Rank{0})) == SIGKILL);
  CHECK(signal_of(job.exits.at(Rank{1})) == SIGTERM);
}

TEST_CASE("a rank that has detached when another fails exits with its own code") {
  auto loop = make_loop();
  Job job(*loop);
  auto spec =
      Ran::acting(2, {"attach", "only=0", "detach", "say=up", "only=1", "wait", "echo", "exit=7"});
  spec.stdin_policy = launcher::StdinPolicy::rank0;
  REQUIRE(job.start(std::move(spec)));
  REQUIRE(job.run_until([&] { return job.out.size() == 2; }));
  ::kill(job.pids.at(Rank{1}), SIGKILL);
  REQUIRE(job.run_until([&] { return job.exits.size() == 1; }));
  job.agent().close_stdin();
  REQUIRE(job.run());
  CHECK(code_of(job.exits.at(Rank{0})) == 7);
}

TEST_CASE("a detached rank that exits with code 0 does not end the others") {
  auto loop = make_loop();
  Job job(*loop);
  REQUIRE(job.start(Ran::acting(2, {"attach", "say=up", "leave", "detach"})));
  REQUIRE(job.run());
  CHECK(job.exits.size() == 2);
  for (const auto& [rank, exit] : job.exits) {
    CHECK(exit.wait_status == 0);
    CHECK(exit.attached);
    CHECK_FALSE(exit.undetached);
  }
}

TEST_CASE("the launcher's signals and kill reach every rank") {
  for (const int number : {SIGUSR1, SIGUSR2}) {
    auto loop = make_loop();
    Job job(*loop);
    REQUIRE(job.start(Ran::acting(3, {"say=up", "wait"})));
    REQUIRE(job.run_until([&] { return job.out.size() == 3; }));
    job.agent().signal(number);
    REQUIRE(job.run());
    for (int rank = 0; rank < 3; ++rank) {
      // The first to end also brings SIGTERM for the others.
      const auto how = signal_of(job.exits.at(Rank{rank}));
      CHECK((how == number || how == SIGTERM));
    }
  }
  auto loop = make_loop();
  Job job(*loop);
  REQUIRE(job.start(Ran::acting(3, {"ignore-term", "escape", "say=up", "wait"})));
  REQUIRE(job.run_until([&] { return job.out.size() == 3; }));
  job.agent().kill();
  REQUIRE(job.run());
  for (int rank = 0; rank < 3; ++rank) CHECK(signal_of(job.exits.at(Rank{rank})) == SIGKILL);
  CHECK(living_with(job.marker()).empty());
}

TEST_CASE("SIGSTOP stops the ranks and holds the start of further ranks") {
  auto loop = make_loop();
  Job job(*loop);
  constexpr int kRanks = 100;
  REQUIRE(job.start(Ran::acting(kRanks, {"echo"})));
  REQUIRE(job.run_until([&] { return !job.pids.empty(); }));
  job.agent().signal(SIGSTOP);
  bool long_enough = false;
  const auto silence = loop->after(200ms, [&] {
    long_enough = true;
    loop->stop();
  });
  REQUIRE(job.run_until([&] { return long_enough; }));
  REQUIRE(job.pids.size() < kRanks);
  for (const auto& [rank, pid] : job.pids) {
    if (job.exits.count(rank) == 0) CHECK(eventually([pid = pid] { return state_of(pid) == 'T'; }));
  }
  job.agent().signal(SIGCONT);
  REQUIRE(job.run());
  CHECK(job.survivors == 0);
  REQUIRE(job.exits.size() == kRanks);
  for (const auto& [rank, exit] : job.exits) CHECK(exit.wait_status == 0);
}

TEST_CASE("a stopped rank that is attached sees the failure of another") {
  auto loop = make_loop();
  Job job(*loop);
  REQUIRE(job.start(Ran::acting(2, {"attach", "say=up", "await-poison", "ack", "detach"})));
  REQUIRE(job.run_until([&] { return job.out.size() == 2; }));
  job.agent().signal(SIGSTOP);
  loop->post([&] { loop->stop(); });
  loop->run();
  REQUIRE(eventually([&] {
    return state_of(job.pids.at(Rank{0})) == 'T' && state_of(job.pids.at(Rank{1})) == 'T';
  }));
  ::kill(job.pids.at(Rank{1}), SIGKILL);
  REQUIRE(job.run());
  CHECK(signal_of(job.exits.at(Rank{1})) == SIGKILL);
  CHECK(code_of(job.exits.at(Rank{0})) == 0);
  CHECK_THAT(job.out[Rank{0}], Catch::Contains("rank 1"));
}

TEST_CASE("dropping the agent ends its ranks") {
  auto loop = make_loop();
  Job job(*loop);
  REQUIRE(job.start(Ran::acting(2, {"ignore-term", "escape", "say=up", "wait"})));
  REQUIRE(job.run_until([&] { return job.out.size() == 2; }));
  CHECK(living_with(job.marker()).size() == 4);
  job.drop_agent();
  CHECK(gone(job.marker()));
}
