// SPDX-License-Identifier: Apache-2.0
// Output and standard input of ranks: large amounts, paused, and without a reader.
#include "agent_job.hpp"

#include <csignal>
#include <fstream>
#include <sys/wait.h>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::test;

namespace {

launcher::AgentSpec acting(int ranks, std::vector<std::string> actions) {
  actions.insert(actions.begin(), actor());
  auto spec = spec_for(ranks, std::move(actions));
  spec.output_window = 65536;
  return spec;
}

/// The resident memory of `pid` in kilobytes.
long resident(int pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") {
      long kilobytes = 0;
      status >> kilobytes;
      return kilobytes;
    }
  }
  return 0;
}

}  // namespace

TEST_CASE("a large output arrives completely without filling the memory") {
  constexpr std::size_t kBytes = 100'000'000;
  auto loop = make_loop();
  Job job(*loop);
  job.keep_output = false;
  REQUIRE(job.start(acting(2, {fmt::format("flood={}", kBytes)})));
  long most = 0;
  std::size_t looked_at = 0;
  REQUIRE(job.run_until([&] {
    if (const auto seen = job.bytes[Rank{0}]; seen > looked_at + (1U << 20U)) {
      looked_at = seen;
      const int agent = parent_of(job.pids[Rank{0}]);
      if (agent > 0) most = std::max(most, resident(agent));
    }
    return false;
  }));
  CHECK(job.bytes[Rank{0}] == kBytes);
  CHECK(job.bytes[Rank{1}] == kBytes);
  CHECK(job.exits.size() == 2);
  CHECK(most > 0);
  CHECK(most < 16 * 1024);
}

TEST_CASE("a rank with much output delays neither another's output nor the end after a failure") {
  auto loop = make_loop();
  Job job(*loop);
  job.keep_output = false;
  REQUIRE(job.start(acting(2, {"only=0", "flood=1000000000000", "say=word", "exit=6"})));
  REQUIRE(job.run());
  CHECK(job.bytes[Rank{1}] == 4);
  CHECK(WEXITSTATUS(job.exits.at(Rank{1}).wait_status) == 6);
  CHECK(WTERMSIG(job.exits.at(Rank{0}).wait_status) == SIGTERM);
}

TEST_CASE("output that is not read blocks the ranks' writes, not their supervision") {
  auto loop = make_loop();
  Job job(*loop);
  job.keep_output = false;
  job.take_output = false;
  REQUIRE(job.start(acting(2, {"only=0", "flood=100000000", "wait"})));
  REQUIRE(job.run_until([&] { return job.bytes[Rank{0}] > 0 && job.pids.size() == 2; }));
  // One window arrives, and then nothing more.
  std::size_t seen = 0;
  do {
    seen = job.bytes[Rank{0}];
    auto pause = loop->after(50ms, [&] { loop->stop(); });
    loop->run();
  } while (job.bytes[Rank{0}] != seen);
  CHECK(seen < 2 * 65536);
  kill(job.pids.at(Rank{1}), SIGKILL);
  REQUIRE(job.run());
  CHECK(job.exits.size() == 2);
  CHECK(living_with(job.marker()).empty());
}

TEST_CASE("back-pressure holds each rank by itself") {
  auto loop = make_loop();
  Job job(*loop);
  job.keep_output = false;
  job.take_output = false;
  REQUIRE(job.start(acting(3, {"flood=1000000"})));
  // The output of ranks 1 and 2 is not read, and rank 0 ends all the same.
  std::size_t taken = 0;
  REQUIRE(job.run_until([&] {
    const auto more = job.bytes[Rank{0}] - taken;
    taken += more;
    if (more > 0) job.agent().output_taken(Rank{0}, more);
    return job.exits.count(Rank{0}) == 1;
  }));
  CHECK(job.bytes[Rank{0}] == 1'000'000);
  CHECK(job.bytes[Rank{1}] < 2 * 65536);
  job.take_output = true;
  for (const Rank rank : {Rank{1}, Rank{2}}) job.agent().output_taken(rank, job.bytes[rank]);
  REQUIRE(job.run());
  for (int rank = 0; rank < 3; ++rank) CHECK(job.bytes[Rank{rank}] == 1'000'000);
}

TEST_CASE("standard input goes to rank 0, with flow control, and ends") {
  auto loop = make_loop();
  Job job(*loop);
  auto spec = acting(2, {"echo"});
  spec.stdin_policy = launcher::StdinPolicy::rank0;
  REQUIRE(job.start(std::move(spec)));
  const std::string block(50'000, 'i');
  for (int i = 0; i < 20; ++i) {
    job.agent().feed_stdin(block);
    REQUIRE(job.run_until([&] { return job.rooms == i + 1; }));
  }
  job.agent().close_stdin();
  REQUIRE(job.run());
  CHECK(job.bytes[Rank{0}] == 1'000'000);
  CHECK(job.bytes[Rank{1}] == 0);
  CHECK(job.exits.at(Rank{0}).wait_status == 0);
}

TEST_CASE("standard input that no rank reads is dropped and blocks nothing") {
  auto loop = make_loop();
  Job job(*loop);
  auto spec = acting(2, {"only=0", "exit=0", "echo"});
  spec.stdin_policy = launcher::StdinPolicy::rank0;
  REQUIRE(job.start(std::move(spec)));
  job.agent().feed_stdin(std::string(60'000, 'x'));
  REQUIRE(job.run_until([&] { return job.exits.size() == 2; }));
  CHECK(job.exits.at(Rank{0}).wait_status == 0);
  REQUIRE(job.run());
  CHECK(job.survivors == 0);
}
