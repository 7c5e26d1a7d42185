// SPDX-License-Identifier: Apache-2.0
// An agent of an elastic job: its workers come and go, and none of them ends another one.
#include "agent_job.hpp"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <sys/wait.h>

#include <catch2/catch.hpp>

#include "base/board_header.hpp"
#include "base/kv/client.hpp"
#include "base/unique_fd.hpp"
#include "launcher/ranks/rank_descriptors.hpp"

using namespace horo;
using namespace horo::test;

namespace {

constexpr auto kHealthy = LossCause::none;

/// An elastic job whose first workers have said something, and the board of its agent.
struct Elastic {
  std::unique_ptr<Loop> loop = make_loop();
  Job job{*loop};
  int agent = 0;
  int guard = 0;
  BoardView board;

  Elastic(int workers, int slots, std::vector<std::string> actions, Duration grace = 10s) {
    actions.insert(actions.begin(), actor());
    auto spec = elastic_spec_for(workers, slots, std::move(actions));
    spec.grace = spec.term_grace = grace;
    REQUIRE(job.start(std::move(spec)));
    await_output(static_cast<std::size_t>(workers));
    agent = parent_of(job.pids.at(Rank{0}));
    guard = parent_of(agent);
    REQUIRE(parent_of(guard) == getpid());
    const auto path = fmt::format("/proc/{}/fd/{}", agent, launcher::kBoardDescriptor);
    const UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(fd);
    board = map_board_header(fd.value()).value();
  }

  ~Elastic() { unmap_board_header(board); }

  Elastic(const Elastic&) = delete;
  Elastic& operator=(const Elastic&) = delete;

  /// So many workers have said something since the beginning.
  void await_output(std::size_t workers) {
    REQUIRE(job.run_until([&] { return job.out.size() == workers; }));
    REQUIRE_FALSE(job.over());
  }

  void await_exit(int worker) {
    REQUIRE(job.run_until([&] { return job.exits.contains(Rank{worker}); }));
    REQUIRE_FALSE(job.over());
  }

  /// The agent answers, so all that was ordered before has been heard.
  void settle() {
    const int before = job.answers;
    REQUIRE(job.agent().ask(0, launcher::Look{}));
    REQUIRE(job.run_until([&] { return job.answers != before; }));
  }

  int pid_of(int worker) const { return job.pids.at(Rank{worker}); }

  RankSlot& slot(int number) const { return board->slot(LocalRank{number}); }

  void expect_healthy(const std::vector<int>& workers) {
    settle();
    REQUIRE_FALSE(job.over());
    CHECK(poison_of(*board).cause == kHealthy);
    for (const int worker : workers) CHECK(alive(pid_of(worker)));
  }

  void expect_lost(const std::string& words) {
    REQUIRE(job.run());
    CHECK(living_with(job.marker()).empty());
    REQUIRE(job.lost);
    CHECK_THAT(job.lost->message, Catch::Contains(words));
  }
};

/// The processes of the job that have the number of this worker in their environment.
std::size_t family_of(const Job& job, int worker) {
  std::size_t count = 0;
  for (const int pid : living_with(job.marker())) {
    std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
    for (std::string entry; std::getline(file, entry, '\0');)
      count += entry == fmt::format("HORO_WORKER={}", worker) ? 1 : 0;
  }
  return count;
}

std::size_t descriptors_of(int pid) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid)))
    ++count;
  return count;
}

/// Kibibytes of memory that only this process has.
long memory_of(int pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("RssAnon:")) return std::atol(line.substr(8).c_str());
  }
  return 0;
}

}  // namespace

TEST_CASE("the end of a worker, good or bad, ends nobody else and poisons nothing") {
  Elastic world(4, 4, {"attach", "say=up", "wait"});
  ::kill(world.pid_of(1), SIGKILL);
  world.await_exit(1);
  const auto& exit = world.job.exits.at(Rank{1});
  CHECK(WTERMSIG(exit.wait_status) == SIGKILL);
  CHECK(exit.attached);
  CHECK(exit.undetached);
  CHECK(exit.heard == Rank{-1});
  world.expect_healthy({0, 2, 3});
  ::kill(world.pid_of(3), SIGUSR1);
  world.await_exit(3);
  world.expect_healthy({0, 2});
  CHECK(world.job.exits.size() == 2);
}

TEST_CASE("a worker that succeeds or fails by its exit code ends nobody else") {
  Elastic world(3, 3, {"say=up", "only=1", "exit=0", "only=2", "exit=3", "wait"});
  world.await_exit(1);
  world.await_exit(2);
  CHECK(world.job.exits.at(Rank{1}).wait_status == 0);
  CHECK(WEXITSTATUS(world.job.exits.at(Rank{2}).wait_status) == 3);
  world.expect_healthy({0});
}

TEST_CASE("a further worker gets the slot of one that has ended, as if nobody had had it") {
  Elastic world(2, 2,
                {"attach", "ack", "env=HORO_WORKER", "say=/", "env=HORO_BOARD_SLOT", "say=/",
                 "env=HORO_ELASTIC", "say=.", "only=1", "await-notice", "wait"});
  REQUIRE(eventually([&] { return world.slot(1).bell.callers == 1; }));
  world.slot(1).heard = 1;
  ::kill(world.pid_of(1), SIGKILL);
  world.await_exit(1);
  CHECK(world.slot(1).state == RankState::dead);
  world.job.spawn({7});
  REQUIRE(world.job.run_until([&] { return world.job.out[Rank{7}].ends_with('.'); }));
  CHECK(world.job.out[Rank{7}] == "7/1/1.");
  CHECK(world.slot(1).state == RankState::attached);
  CHECK(world.slot(1).heard == 0);
  CHECK(world.slot(1).bell.callers == 0);
  CHECK(world.slot(0).state == RankState::attached);
  world.expect_healthy({0, 7});
}

TEST_CASE("workers are spawned one after the other, and beside those that live") {
  Elastic world(1, 4, {"env=HORO_RANK", "say=.", "env=HORO_SIZE", "wait"});
  world.job.spawn({4, 2});
  world.job.spawn({9});
  REQUIRE(world.job.run_until([&] { return world.job.out[Rank{9}].ends_with("10"); }));
  CHECK(world.job.out[Rank{9}] == "9.10");
  world.await_output(4);
  world.expect_healthy({0, 2, 4, 9});
}

TEST_CASE("an order to end a worker kills all of its processes, and none of another worker") {
  Elastic world(2, 2, {"ignore-term", "fork", "escape", "say=up", "wait"}, 50ms);
  REQUIRE(eventually([&] { return family_of(world.job, 0) == 3 && family_of(world.job, 1) == 3; }));
  world.job.agent().end_worker(Rank{1});
  world.await_exit(1);
  CHECK(WTERMSIG(world.job.exits.at(Rank{1}).wait_status) == SIGKILL);
  CHECK(eventually([&] { return family_of(world.job, 1) == 0; }));
  CHECK(family_of(world.job, 0) == 3);
  world.expect_healthy({0});
  world.job.agent().end_worker(Rank{1});
  world.job.agent().end_worker(Rank{5});
  world.expect_healthy({0});
}

TEST_CASE("the processes that a worker leaves behind are killed when it ends by itself") {
  Elastic world(2, 2, {"fork", "escape", "say=up", "only=1", "exit=1", "wait"});
  world.await_exit(1);
  CHECK(eventually([&] { return family_of(world.job, 1) == 0; }));
  CHECK(family_of(world.job, 0) == 3);
  world.expect_healthy({0});
}

TEST_CASE("a worker that ends at SIGTERM has the grace to do so") {
  Elastic world(2, 2, {"say=up", "wait"});
  world.job.agent().end_worker(Rank{0});
  world.await_exit(0);
  CHECK(WTERMSIG(world.job.exits.at(Rank{0}).wait_status) == SIGTERM);
  world.expect_healthy({1});
}

TEST_CASE("a notice changes the word of the board and wakes its workers") {
  Elastic world(2, 3, {"attach", "say=up:", "await-notice", "wait"});
  CHECK(notice_of(*world.board) == Notice{});
  world.job.agent().notice(7, Notice::kAdded);
  REQUIRE(world.job.run_until(
      [&] { return world.job.out[Rank{0}] == "up:7 2" && world.job.out[Rank{1}] == "up:7 2"; }));
  world.job.agent().notice(6, Notice::kRemoved);
  world.job.agent().notice(8, Notice::kRemoved | Notice::kAdded);
  world.settle();
  CHECK(notice_of(*world.board) == Notice{.sequence = 8, .flags = 3});
}

TEST_CASE("workers that are ended in the moment of their order cost the others nothing") {
  Elastic world(1, 4, {"say=up", "wait"});
  // The agent finds both orders at once, before it can start the worker.
  ::kill(world.agent, SIGSTOP);
  world.job.spawn({7});
  world.job.agent().end_worker(Rank{7});
  const auto sent = world.loop->after(20ms, [&] { world.loop->stop(); });
  world.loop->run();
  ::kill(world.agent, SIGCONT);
  REQUIRE(world.job.run_until([&] {
    return world.job.spawn_failures.contains(Rank{7}) || world.job.exits.contains(Rank{7});
  }));
  world.expect_healthy({0});
  world.job.spawn({8});
  world.await_output(2);
  world.expect_healthy({0, 8});
}

TEST_CASE("an agent without workers stays until it is closed") {
  Elastic world(1, 1, {"say=up", "only=0", "wait"});
  ::kill(world.pid_of(0), SIGKILL);
  world.await_exit(0);
  world.expect_healthy({});
  world.job.spawn({1});
  world.await_exit(1);
  world.expect_healthy({});
  world.job.agent().close();
  REQUIRE(world.job.run());
  CHECK(world.job.survivors == 0);
  CHECK(world.job.exits.size() == 2);
}

TEST_CASE("a closed agent finishes when its last worker has ended") {
  Elastic world(2, 2, {"ignore-term", "escape", "say=up", "wait"}, 20ms);
  world.job.agent().close();
  world.expect_healthy({0, 1});
  world.job.agent().end_worker(Rank{0});
  world.await_exit(0);
  world.expect_healthy({1});
  world.job.agent().end_worker(Rank{1});
  REQUIRE(world.job.run());
  CHECK(world.job.survivors == 0);
  CHECK(world.job.exits.size() == 2);
  CHECK(living_with(world.job.marker()).empty());
}

TEST_CASE("an agent may begin without workers") {
  auto loop = make_loop();
  Job job(*loop);
  REQUIRE(job.start(elastic_spec_for(0, 2, {actor(), "say=up", "wait"})));
  job.spawn({3});
  job.agent().notice(1, Notice::kAdded);
  REQUIRE(job.run_until([&] { return job.out[Rank{3}] == "up"; }));
  job.agent().close();
  job.agent().stop({.rank = Rank{-1}, .cause = LossCause::aborted, .detail = 0}, "testhost");
  REQUIRE(job.run());
  CHECK(job.survivors == 0);
  CHECK(WTERMSIG(job.exits.at(Rank{3}).wait_status) == SIGTERM);
}

TEST_CASE("a command that cannot be executed is reported for each worker, and the agent stays") {
  auto loop = make_loop();
  Job job(*loop);
  REQUIRE(job.start(elastic_spec_for(1, 2, {"no-such-program-here"})));
  job.spawn({1});
  REQUIRE(job.run_until([&] { return job.spawn_failures.size() == 2; }));
  job.spawn({2, 3});  // Both slots are free again.
  REQUIRE(job.run_until([&] { return job.spawn_failures.size() == 4; }));
  REQUIRE_FALSE(job.over());
  for (const auto& [worker, error] : job.spawn_failures) CHECK(error.code == Errc::not_found);
  job.agent().close();
  REQUIRE(job.run());
  CHECK(job.survivors == 0);
  CHECK(job.exits.empty());
}

TEST_CASE("a worker is not started while the job is stopped, and can be ended before") {
  Elastic world(1, 3, {"say=up", "wait"});
  world.job.agent().signal(SIGSTOP);
  world.job.spawn({1, 2});
  world.job.agent().end_worker(Rank{1});
  REQUIRE(world.job.run_until([&] { return world.job.spawn_failures.contains(Rank{1}); }));
  CHECK(world.job.spawn_failures.at(Rank{1}).code == Errc::cancelled);
  world.settle();
  CHECK(world.job.pids.size() == 1);
  world.job.agent().signal(SIGCONT);
  REQUIRE(world.job.run_until([&] { return world.job.out.contains(Rank{2}); }));
  CHECK(world.job.pids.size() == 2);
}

TEST_CASE("orders that cannot be carried out are the launcher's fault and end the agent") {
  Elastic world(2, 2, {"escape", "say=up", "wait"});
  SECTION("more workers than slots") {
    world.job.spawn({2});
    world.expect_lost("all 2 slots of this host are used");
  }
  SECTION("a worker twice") {
    ::kill(world.pid_of(0), SIGKILL);
    world.await_exit(0);
    world.job.spawn({1});
    world.expect_lost("worker 1, which this host has already");
  }
  SECTION("a worker after the last one") {
    ::kill(world.pid_of(0), SIGKILL);
    world.await_exit(0);
    world.job.agent().close();
    world.job.spawn({2});
    world.expect_lost("after 'close'");
  }
}

TEST_CASE("an agent of a job that is not elastic refuses the orders of one that is") {
  auto loop = make_loop();
  Job job(*loop);
  REQUIRE(job.start(spec_for(1, {actor(), "say=up", "wait"})));
  REQUIRE(job.run_until([&] { return !job.out.empty(); }));
  job.agent().close();
  REQUIRE(job.run());
  REQUIRE(job.lost);
  CHECK_THAT(job.lost->message, Catch::Contains("sent 'close', but the job is not elastic"));
  CHECK(living_with(job.marker()).empty());
}

TEST_CASE("a stop ends all workers of an elastic job, also spawned ones") {
  Elastic world(1, 2, {"attach", "say=up:", "await-poison", "ack", "detach"});
  world.job.spawn({5});
  world.await_output(2);
  world.job.agent().stop({.rank = Rank{5}, .cause = LossCause::aborted, .detail = 0}, "testhost");
  REQUIRE(world.job.run());
  CHECK(world.job.survivors == 0);
  for (const int worker : {0, 5}) {
    CHECK(world.job.out[Rank{worker}] == "up:testhost: rank 5 the job was stopped");
    CHECK(world.job.exits.at(Rank{worker}).wait_status == 0);
  }
}

TEST_CASE("nothing of an elastic job outlives its launcher's connection, its agent or its guard") {
  Elastic world(1, 2, {"ignore-term", "fork", "escape", "say=up", "wait"});
  world.job.spawn({1});
  world.await_output(2);
  REQUIRE(eventually([&] { return living_with(world.job.marker()).size() == 6; }));
  SECTION("connection") {
    world.job.drop_agent();
    CHECK(gone(world.job.marker()));
    CHECK(eventually([&] { return !alive(world.agent) && !alive(world.guard); }));
  }
  SECTION("agent") {
    ::kill(world.agent, SIGKILL);
    world.expect_lost("was lost");
  }
  SECTION("guard") {
    ::kill(world.guard, SIGKILL);
    world.expect_lost("guard");
  }
}

TEST_CASE("an agent that is told to end says so, and keeps its workers while the launcher acts") {
  Elastic world(2, 2, {"say=up", "wait"});
  ::kill(world.agent, SIGTERM);
  REQUIRE(world.job.run_until([&] { return world.job.ends_asked == 1; }));
  world.expect_healthy({0, 1});
  world.job.agent().close();
  for (const int worker : {0, 1}) world.job.agent().end_worker(Rank{worker});
  REQUIRE(world.job.run());
  CHECK(world.job.survivors == 0);
  CHECK(world.job.exits.size() == 2);
}

TEST_CASE("an agent that is told to end and gets no order ends its workers after their grace") {
  Elastic world(1, 1, {"escape", "say=up", "wait"}, 50ms);
  ::kill(world.agent, SIGTERM);
  world.expect_lost("was told to end by a signal");
  CHECK(world.job.ends_asked == 1);
}

TEST_CASE("a second signal to end ends the workers of an agent at once") {
  Elastic world(1, 1, {"escape", "say=up", "wait"}, 1h);
  ::kill(world.agent, SIGTERM);
  REQUIRE(world.job.run_until([&] { return world.job.ends_asked == 1; }));
  // One that comes within a second is the same signal, which the guard has passed on.
  Subscription again;
  std::function<void()> nag = [&] {
    ::kill(world.agent, SIGTERM);
    again = world.loop->after(100ms, nag);
  };
  nag();
  world.expect_lost("was told to end by a second signal");
  CHECK(world.job.ends_asked == 1);
}

TEST_CASE("standard input goes to worker 0, also when it comes first") {
  auto loop = make_loop();
  Job job(*loop);
  auto spec = elastic_spec_for(0, 2, {actor(), "only=0", "echo", "say=.", "wait"});
  spec.stdin_policy = launcher::StdinPolicy::rank0;
  REQUIRE(job.start(spec));
  job.agent().feed_stdin("hello");
  job.agent().close_stdin();
  job.spawn({0, 1});
  REQUIRE(job.run_until([&] { return job.out[Rank{0}] == "hello." && job.out[Rank{1}] == "."; }));
}

TEST_CASE("200 workers one after the other leave the agent with its descriptors and memory") {
  Elastic world(1, 2, {"say=up", "only=0", "wait"});
  std::size_t descriptors = 0;
  long memory = 0;
  for (int worker = 1; worker <= 200; ++worker) {
    world.job.spawn({worker});
    world.await_exit(worker);
    CHECK(world.job.out[Rank{worker}] == "up");
    if (worker != 20) continue;
    world.settle();
    descriptors = descriptors_of(world.agent);
    memory = memory_of(world.agent);
  }
  world.expect_healthy({0});
  CHECK(eventually([&] { return descriptors_of(world.agent) <= descriptors; }));
  CHECK(eventually([&] { return children_of(world.agent).size() == 1; }));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  constexpr long kSlack = 128;  // A thousandth of the slack for each worker would be a leak.
  CHECK(memory_of(world.agent) <= memory + kSlack);
#endif
}

TEST_CASE("workers call at their agent, which passes the calls on and hands the answers over") {
  Elastic world(2, 2, {"env=HORO_MEMBERSHIP", "say=!", "wait"});
  auto& told = world.job.out[Rank{0}];
  REQUIRE(world.job.run_until([&] { return told.ends_with("!"); }));
  const auto address = told.substr(0, told.size() - 1);
  const elastic::MembershipCall call{.worker = 1, .attempt = 3, .generation = 2};
  auto worker = std::async(std::launch::async, [&] {
    const auto deadline = Deadline::in(SteadyClock::instance(), kLimit);
    auto client = kv::Client::connect(address, kv::Secret{}, deadline).value();
    const auto bytes = client.set_then_get(elastic::call_key(1), encode(call),
                                           elastic::answer_key(1, 3), deadline);
    return elastic::decode_answer(bytes.value()).value();
  });
  REQUIRE(world.job.run_until([&] { return !world.job.calls.empty(); }));
  CHECK(world.job.calls == std::vector<elastic::MembershipCall>{call});
  world.job.agent().answer(
      {{.worker = 1, .attempt = 3, .answer = {.generation = 3, .rank = 1, .size = 2}}});
  world.settle();
  CHECK(worker.get().rank == 1);
  world.expect_healthy({0, 1});
}
