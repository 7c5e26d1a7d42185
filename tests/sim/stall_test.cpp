// SPDX-License-Identifier: Apache-2.0
// Reports of ranks that keep others waiting. Time stands still unless a test case moves it.
#include <catch2/catch.hpp>

#include "runtime/stalls/stall_watch.hpp"
#include "tests/sim/sim_job.hpp"

using namespace std::chrono_literals;
using namespace horo;
using namespace horo::runtime;
using horo::sim::SimJob;
using horo::sim::tight_params;
using horo::sim::vector_of;

namespace {

constexpr std::uint64_t kMostSteps = 1'000'000;

/// A job whose ranks look for stalls when the test case says so.
struct Watched {
  SimJob job;
  ManualClock clock;
  std::vector<std::unique_ptr<StallWatch>> watches;
  std::vector<ProcessState> processes;

  explicit Watched(int ranks, StallTimes times = {}, std::uint64_t seed = 1)
      : job(ranks, seed, tight_params()),
        processes(static_cast<std::size_t>(ranks), ProcessState::sleeping) {
    clock.advance(1000s);
    for (int r = 0; r < ranks; ++r) {
      job.host(r).slot(job.host(r).me()).pid.store(static_cast<std::uint32_t>(r + 1));
      watches.push_back(
          std::make_unique<StallWatch>(job.host(r), job.sets(r).table(), times,
                                       [this](std::uint32_t pid) { return processes[pid - 1]; }));
    }
  }

  std::uint64_t now_ns() const {
    return static_cast<std::uint64_t>(clock.now().time_since_epoch().count());
  }

  StallWatch& watch(int rank) { return *watches[static_cast<std::size_t>(rank)]; }

  void add(int rank, const std::string& name, std::int64_t count = 1) {
    job.add(rank, name, vector_of(Kind::allreduce, DType::f32, count), false);
  }

  /// Arms the stall watch as a session does when it submits.
  void submit(int rank) {
    job.host(rank).my_rank().last_call.store(now_ns());
    while (job.submit_next_of(rank)) {
    }
    watch(rank).arm(job.board(rank), clock.now());
  }

  void wait_in(int rank, std::uint64_t tensor) {
    job.host(rank).my_rank().waits_for.store(tensor + 1);
  }

  /// Lets `d` pass. Whenever a look is due the ranks look, in order. Returns their lines.
  std::vector<std::string> pass(Duration d) {
    std::vector<std::string> lines;
    const auto until = clock.now() + d;
    for (;;) {
      const auto next = watch(0).until_due(clock.now());
      const bool due = next != Duration::max() && clock.now() + next <= until;
      clock.advance(due ? next : until - clock.now());
      for (auto& watch : watches) {
        auto findings = watch->look(clock.now());
        lines.insert(lines.end(), findings.lines.begin(), findings.lines.end());
        if (!findings.end.empty()) watch->end_job(findings);
      }
      if (!due) return lines;
    }
  }
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a tensor that one rank does not submit is reported once, then at growing times") {
  Watched w(3);
  w.processes[2] = ProcessState::stopped;
  for (int r = 0; r < 2; ++r) {
    w.add(r, "a");
    w.submit(r);
  }
  CHECK(w.pass(59s).empty());
  const std::string after = " for rank 2 (stopped, by SIGSTOP or Ctrl-Z; never declared it)";
  CHECK(w.pass(2s) == Lines{"tensor 'a' has waited 60 s" + after});
  CHECK(w.pass(58s).empty());
  CHECK(w.pass(2s) == Lines{"tensor 'a' has waited 120 s" + after});
  CHECK(w.pass(118s).empty());
  CHECK(w.pass(2s) == Lines{"tensor 'a' has waited 240 s" + after});
  CHECK(w.pass(1000s).size() == 2);
}

TEST_CASE("no rank looks when nothing is pending") {
  Watched w(2);
  CHECK(w.watch(0).until_due(w.clock.now()) == Duration::max());
  for (int r = 0; r < 2; ++r) {
    w.add(r, "a");
    w.submit(r);
  }
  CHECK(w.watch(1).until_due(w.clock.now()) == 60s);
  REQUIRE(w.job.run(kMostSteps));
  CHECK(w.pass(61s).empty());
  CHECK(w.watch(0).until_due(w.clock.now()) == Duration::max());
  // Looks resume when something is pending.
  w.add(0, "a");
  w.submit(0);
  CHECK(w.pass(61s).size() == 1);
}

TEST_CASE("tensors that are submitted one after another share a line") {
  Watched w(2);
  for (int i = 0; i < 9; ++i) {
    w.add(0, "t" + std::to_string(i));
    w.submit(0);
    w.clock.advance(500ms);
  }
  CHECK(w.pass(70s) == Lines{"tensors 't0', 't1', 't2', 't3', 't4', 't5' and 3 more have waited 60 "
                             "s for rank 1 (asleep outside libhoro, not called since horo_init; "
                             "never declared them)"});
}

TEST_CASE("ranks that wait for each other's tensors name them") {
  Watched w(2);
  w.add(0, "x");
  w.submit(0);
  w.add(1, "y");
  w.submit(1);
  w.wait_in(0, 0);
  w.wait_in(1, 1);
  CHECK(w.pass(61s) ==
        Lines{"tensor 'x' has waited 60 s for rank 1 (waits for tensor 'y'; never declared it)",
              "tensor 'y' has waited 60 s for rank 0 (waits for tensor 'x'; never declared it)"});
}

TEST_CASE("a tensor of another set that a rank waits for is named with its set") {
  Watched w(3);
  const auto set = w.job.add_set({1, 2});
  w.add(0, "x");
  w.submit(0);
  w.job.add(1, "y", vector_of(Kind::allreduce, DType::f32, 1), false, set);
  w.submit(1);
  w.watch(1).arm(*w.job.sets(1).find(set)->board, w.clock.now());
  w.wait_in(1, std::uint64_t{set.value()} << 32U);
  const auto lines = w.pass(61s);
  REQUIRE(lines.size() == 2);
  // Rank 0 is no member, so it cannot know the name.
  CHECK_THAT(lines[0], Catch::Contains("tensor 'x' has waited 60 s for rank 1 (waits for tensor") &&
                           Catch::Contains("of process set 1"));
  CHECK(lines[1] ==
        "process set 1: tensor 'y' has waited 60 s for rank 2 (asleep outside libhoro, "
        "not called since horo_init; never declared it)");
}

TEST_CASE("complete tensors of an incomplete group name the ranks that the group waits for") {
  Watched w(2);
  for (int r = 0; r < 2; ++r) {
    for (const auto* name : {"a", "b"}) {
      auto& buffer = w.job.add(r, name, vector_of(Kind::allreduce, DType::f32, 1), false);
      buffer.group = "g";
      buffer.group_size = 3;
    }
  }
  auto& third = w.job.add(0, "c", vector_of(Kind::allreduce, DType::f32, 1), false);
  third.group = "g";
  third.group_size = 3;
  w.submit(0);
  w.submit(1);
  w.job.run(200);
  CHECK(
      w.pass(61s) ==
      Lines{"tensors 'a', 'b' have waited 60 s for the other tensors of group 'g', which wait for "
            "rank 1 (asleep outside libhoro, which it last called 60 s ago)",
            "tensor 'c' has waited 60 s for rank 1 (asleep outside libhoro, which it last called "
            "60 s ago; never declared it)"});
}

TEST_CASE("a rank that stops inside an entry is named, at every step") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Watched w(3, {}, seed);
    for (int r = 0; r < 3; ++r) {
      w.add(r, "a", 9000);
      w.submit(r);
    }
    for (std::uint64_t i = 0; i < seed; ++i) w.job.step();
    w.job.pause(1);
    w.processes[1] = ProcessState::stopped;
    if (w.job.run(20'000)) continue;  // The rank had done its share before it stopped.
    for (int r = 0; r < 3; ++r) w.wait_in(r, 0);
    const auto lines = w.pass(130s);
    REQUIRE_FALSE(lines.empty());
    for (const auto& line : lines) {
      CHECK_THAT(line, Catch::StartsWith("tensor 'a' has not moved for ") &&
                           Catch::EndsWith("the share of rank 1 (stopped, by SIGSTOP or Ctrl-Z)"));
    }
  }
}

TEST_CASE("a rank that has left a small sum alone is woken before anybody calls it stalled") {
  Watched w(2);
  for (int r = 0; r < 2; ++r) {
    w.add(r, "a");
    w.submit(r);
  }
  while (w.job.sets(0).progress()) {
  }
  REQUIRE(w.job.board(1).log().in_flight() == 1);
  w.add(0, "b");
  w.submit(0);
  w.wait_in(0, 1);
  w.job.host(1).waker().say_undriven();
  const auto& bell = w.job.host(1).slot(w.job.host(1).me()).bell;
  const auto rung = bell.rings.load();
  auto lines = w.pass(61s);
  CHECK(bell.rings.load() == rung + 1);
  while (w.job.sets(1).progress()) {
  }
  for (auto& line : w.pass(200s)) lines.push_back(std::move(line));
  REQUIRE_FALSE(lines.empty());
  for (const auto& line : lines) CHECK_THAT(line, Catch::StartsWith("tensor 'b'"));
}

TEST_CASE("a rank that stops while it cuts the log is named") {
  Watched w(2);
  w.job.board(0).region().body().combiner.store(2);
  for (int r = 0; r < 2; ++r) {
    w.add(r, "a");
    w.submit(r);
  }
  w.job.run(200);
  CHECK(w.pass(61s).empty());  // To the others the cutter seems to be working.
  w.processes[1] = ProcessState::stopped;
  CHECK(w.pass(61s) ==
        Lines{"tensor 'a' has waited 120 s for rank 1 (stopped, by SIGSTOP or Ctrl-Z)"});
}

TEST_CASE("a join is no stall while the other ranks continue, and is one when they do not") {
  Watched w(2);
  w.job.add(0, "join", vector_of(Kind::join, DType::u8, 0), false);
  w.submit(0);
  for (int step = 0; step < 6; ++step) {
    w.add(1, "a");
    w.submit(1);
    while (!w.job.buffers(1).back()->operation->done()) w.job.step();
    CHECK(w.pass(50s).empty());
  }
  const auto lines = w.pass(200s);
  REQUIRE_FALSE(lines.empty());
  CHECK_THAT(lines.front(), Catch::StartsWith("tensor 'join' has waited ") &&
                                Catch::Contains(" for rank 1 (asleep outside libhoro"));
}

TEST_CASE("after the shutdown time all operations of all ranks end with the reason") {
  Watched w(3, {.warning = 60s, .shutdown = 90s});
  for (int r = 0; r < 2; ++r) {
    w.add(r, "a");
    w.submit(r);
  }
  w.add(2, "b");
  w.submit(2);
  CHECK(w.pass(89s).size() == 2);
  w.pass(2s);
  REQUIRE(w.job.run(kMostSteps));
  for (int r = 0; r < 3; ++r) {
    auto& operation = *w.job.buffers(r).front()->operation;
    CHECK(operation.status() == Errc::peer_lost);
    CHECK_THAT(
        operation.message(),
        Catch::StartsWith("stalled for longer than the 90 s of stall.shutdown.time: ") &&
            Catch::Contains("tensor 'a' has waited 90 s for rank 2 (asleep outside libhoro"));
    CHECK_FALSE(w.job.engine(r).health());
  }
}

TEST_CASE("the reason of a stall is not shown while another rank still writes it") {
  SimJob job(2, 1, tight_params());
  auto& body = job.host(1).body();
  body.stall_written = 1;
  std::string_view("stalled for lon").copy(body.stall_text.data(), body.stall_text.size());
  CHECK_FALSE(job.host(0).say_stall("stalled elsewhere"));
  // As a leader does that another host has told of its stall.
  poison_board(job.host(0).board(), {.rank = Rank{1}, .cause = LossCause::stalled}, "there");
  CHECK(job.sets(0).loss().error().message ==
        "rank 1 on there was lost: kept the others waiting for too long");
  body.stall_written = 2;
  CHECK(job.sets(0).loss().error().message == "stalled for lon");
}

TEST_CASE("a job that was stopped as a whole reports no stall when it continues") {
  Watched w(2, {.warning = 60s, .shutdown = 90s});
  w.add(0, "a");
  w.submit(0);
  w.clock.advance(600s);  // No rank looked.
  CHECK(w.watch(0).look(w.clock.now()).lines.empty());
  CHECK(w.pass(59s).empty());
  CHECK(w.pass(2s).size() == 1);
}

TEST_CASE("with stall checks off no rank looks") {
  Watched w(2, {.warning = 0s});
  w.add(0, "a");
  w.submit(0);
  CHECK(w.watch(0).until_due(w.clock.now()) == Duration::max());
  CHECK(w.pass(1000s).empty());
}
