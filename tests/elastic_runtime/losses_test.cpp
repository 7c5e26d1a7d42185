// SPDX-License-Identifier: Apache-2.0
// A worker is lost, in each phase of a job on one host; the others go on in the next generation.
#include "elastic_job.hpp"

#include <csignal>
#include <iostream>

#include <catch2/catch.hpp>

using namespace elastic_test;

namespace {

const std::vector<Member> kThree{{0}, {1}, {2}};

/// The first three workers have lost the fourth: they enter the next generation and sum.
void go_on(Job& job) {
  job.all({0, 1, 2}, "shutdown", "out");
  for (const int worker : {0, 1, 2}) job[worker].tell("init");
  job.form(kThree, 3);
  for (const int worker : {0, 1, 2}) {
    CHECK(job[worker].hear() == fmt::format("in {} {} 3 3", job.generation(), worker));
  }
  job.all({0, 1, 2}, "sum", "sum 6");
}

}  // namespace

TEST_CASE("three workers go on after the fourth is killed while all are idle") {
  Job job(4);
  job.begin_with({0, 0, 0, 0});
  job.all({0, 1, 2, 3}, "sum", "sum 10");
  job[3].kill(SIGKILL);
  CHECK(job[3].wait() == 128 + SIGKILL);
  job.all({0, 1, 2}, "sum", "failed peer_lost");
  go_on(job);
}

TEST_CASE("three workers go on after the fourth is killed while they wait for its tensor") {
  Job job(4);
  job.begin_with({0, 0, 0, 0});
  for (const int worker : {0, 1, 2}) job[worker].tell("sum");
  CHECK(job[3].ask("nap 100") == "rested");
  job[3].kill(SIGKILL);
  for (const int worker : {0, 1, 2}) CHECK(job[worker].hear().substr(0, 16) == "failed peer_lost");
  go_on(job);
}

TEST_CASE("a fourth worker joins three survivors in a later generation") {
  Job job(5);
  job.begin_with({0, 0, 0, 0});
  job[3].kill(SIGKILL);
  job.all({0, 1, 2}, "sum", "failed peer_lost");
  go_on(job);
  job.start().tell("init");
  job.all({0, 1, 2}, "shutdown", "out");
  for (const int worker : {0, 1, 2}) job[worker].tell("init");
  job.form({{0}, {1}, {2}, {4}}, 3);
  CHECK(job[4].hear() == "in 3 3 4 3");
  for (const int worker : {0, 1, 2})
    CHECK(job[worker].hear() == fmt::format("in 3 {} 4 3", worker));
  job.all({0, 1, 2, 4}, "sum", "sum 10");
}

TEST_CASE("the first rank is lost, and another process is the first rank of the next generation") {
  Job job(4);
  job.begin_with({0, 0, 0, 0});
  job[0].kill(SIGKILL);
  for (const int worker : {1, 2, 3}) job[worker].tell("train");
  job.form({{1}, {2}, {3}}, 3);
  for (const int worker : {1, 2, 3}) {
    CHECK(job[worker].hear() == fmt::format("in 2 {} 3 3", worker - 1));
    CHECK(job[worker].hear() == "sum 6");
  }
}

TEST_CASE("a generation whose member never comes is given up, and the others meet in the next") {
  Job job(4);
  job.begin_with({0, 0, 0, 0});
  job.all({0, 1, 2, 3}, "shutdown", "out");
  const std::vector<Member> four{{0}, {1}, {2}, {3}};
  for (const int worker : {0, 1, 2}) job[worker].tell("init");
  std::vector<horo::elastic::MembershipCall> calls;
  for (const int worker : {0, 1, 2}) calls.push_back(job.await_call(worker));
  job.begin();
  for (const int worker : {0, 1, 2})
    job.answer(calls[static_cast<std::size_t>(worker)], job.answer_for(four, worker, 4));
  job[3].kill(SIGKILL);
  job.give_up();
  for (const int worker : {0, 1, 2}) {
    calls[static_cast<std::size_t>(worker)] = job.await_call(worker);
    CHECK(calls[static_cast<std::size_t>(worker)].attempt == 3);
    CHECK(calls[static_cast<std::size_t>(worker)].generation == 1);
  }
  job.begin();
  for (const int worker : {0, 1, 2})
    job.answer(calls[static_cast<std::size_t>(worker)], job.answer_for(kThree, worker, 3));
  for (const int worker : {0, 1, 2})
    CHECK(job[worker].hear() == fmt::format("in 3 {} 3 3", worker));
  job.all({0, 1, 2}, "sum", "sum 6");
}

TEST_CASE("the first rank of a generation is killed while the others look for it") {
  Job job(4);
  job.begin_with({0, 0, 0, 0});
  job.all({0, 1, 2, 3}, "shutdown", "out");
  const std::vector<Member> order{{3}, {0}, {1}, {2}};
  for (const int worker : {0, 1, 2, 3}) job[worker].tell("init");
  std::vector<horo::elastic::MembershipCall> calls;
  for (const int worker : {0, 1, 2, 3}) calls.push_back(job.await_call(worker));
  job.begin();
  job.answer(calls[3], job.answer_for(order, 3, 4));
  job.answer(calls[0], job.answer_for(order, 0, 4));
  job.answer(calls[1], job.answer_for(order, 1, 4));
  job[3].kill(SIGKILL);
  job[3].wait();
  job.answer(calls[2], job.answer_for(order, 2, 4));
  job.give_up();
  job.form(kThree, 3);
  for (const int worker : {0, 1, 2})
    CHECK(job[worker].hear() == fmt::format("in 3 {} 3 3", worker));
  job.all({0, 1, 2}, "sum", "sum 6");
}

TEST_CASE("a survivor that does not call the runtime for long is not killed after a loss") {
  Job job(4, {{"HORO_RELEASE_TIMEOUT", "0.3"}});
  job.begin_with({0, 0, 0, 0});
  job[2].tell("nap 1500");
  job[3].kill(SIGKILL);
  for (const int worker : {0, 1}) job[worker].tell("train");
  CHECK(job[2].hear() == "rested");
  job[2].tell("train");
  job.form(kThree, 3);
  for (const int worker : {0, 1, 2}) {
    CHECK(job[worker].hear() == fmt::format("in 2 {} 3 3", worker));
    CHECK(job[worker].hear() == "sum 6");
  }
}

TEST_CASE("two workers are lost one after the other, in and between generations") {
  Job job(4);
  job.begin_with({0, 0, 0, 0});
  for (const int worker : {0, 1, 2}) job[worker].tell("train");
  job[3].kill(SIGKILL);
  const auto call = job.await_call(0);
  job[2].kill(SIGKILL);
  const auto other = job.await_call(1);
  const std::vector<Member> two{{0}, {1}};
  job.begin();
  job.answer(call, job.answer_for(two, 0, 2));
  job.answer(other, job.answer_for(two, 1, 2));
  for (const int worker : {0, 1}) {
    CHECK(job[worker].hear() == fmt::format("in 2 {} 2 2", worker));
    CHECK(job[worker].hear() == "sum 3");
  }
}

TEST_CASE("the time from the end of a worker to the first sum without it") {
  Job job(4);
  job.begin_with({0, 0, 0, 0});
  for (const int worker : {0, 1, 2, 3}) job[worker].tell("train");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto killed = Clock::now();
  job[3].kill(SIGKILL);
  job.form(kThree, 3);
  for (const int worker : {0, 1, 2}) {
    CHECK(job[worker].hear() == fmt::format("in 2 {} 3 3", worker));
    CHECK(job[worker].hear() == "sum 6");
  }
  const std::chrono::duration<double, std::milli> took = Clock::now() - killed;
  std::cout << fmt::format("first sum {:.1f} ms after SIGKILL of one of four ranks\n",
                           took.count());
}
