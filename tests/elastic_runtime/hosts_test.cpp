// SPDX-License-Identifier: Apache-2.0
// The same with members that share no memory, as on two hosts: the leaders of the hosts tell each
// other of a loss, and a backend moves the tensors.
#include "elastic_job.hpp"

#include <csignal>
#include <iostream>

#include <catch2/catch.hpp>

#include "base/elastic/generation_keys.hpp"

using namespace elastic_test;

namespace {

/// Worker `lost` of two hosts with two ranks each is killed; the others go on, on both hosts.
void lose(int lost, const char* backend) {
  INFO("worker " << lost << " is lost, backend " << backend);
  Job job(5, {{"HORO_CPU_OPERATIONS", backend}});
  job.begin_with({0, 0, 1, 1});
  job.all({0, 1, 2, 3}, "sum", "sum 10");
  std::vector<Member> left;
  for (const int worker : {0, 1, 2, 3}) {
    job[worker].tell("train");
    if (worker != lost) left.push_back({.worker = worker, .host = worker / 2});
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto killed = Clock::now();
  job[lost].kill(SIGKILL);
  job.form(left, 3);
  for (std::size_t rank = 0; rank < left.size(); ++rank) {
    REQUIRE(job[left[rank].worker].hear() == fmt::format("in 2 {} 3 3", rank));
    REQUIRE(job[left[rank].worker].hear() == "sum 6");
  }
  // The launcher erases what is left of a generation by the generation in the names.
  for (const auto& key : job.store.keys()) {
    INFO(key);
    CHECK((key.starts_with("horo/elastic/") || horo::elastic::generation_of_key(key)));
  }
  const std::chrono::duration<double, std::milli> took = Clock::now() - killed;
  std::cout << fmt::format("{}: first sum {:.1f} ms after SIGKILL of worker {} on two hosts\n",
                           backend, took.count(), lost);
}

}  // namespace

TEST_CASE("two hosts go on after any of their ranks is lost") {
  for (const int lost : {0, 1, 2, 3}) lose(lost, "tcp");
}

TEST_CASE("two hosts that use Gloo go on after a rank is lost") {
  lose(0, "gloo");
  lose(3, "gloo");
}

TEST_CASE("a host of one rank goes, and another comes") {
  Job job(5, {{"HORO_CPU_OPERATIONS", "tcp"}});
  job.begin_with({0, 0, 1});
  job[2].kill(SIGKILL);
  job.all({0, 1}, "sum", "failed peer_lost");
  job.all({0, 1}, "shutdown", "out");
  for (const int worker : {0, 1}) job[worker].tell("init");
  job.form({{0}, {1}}, 2);
  for (const int worker : {0, 1}) CHECK(job[worker].hear() == fmt::format("in 2 {} 2 2", worker));
  job.all({0, 1}, "sum", "sum 3");
  job.start().tell("init");
  job.all({0, 1}, "shutdown", "out");
  for (const int worker : {0, 1}) job[worker].tell("init");
  job.form({{0}, {1}, {3, 1}}, 2);
  for (const int worker : {0, 1}) CHECK(job[worker].hear() == fmt::format("in 3 {} 3 2", worker));
  CHECK(job[3].hear() == "in 3 2 3 2");
  job.all({0, 1, 3}, "sum", "sum 6");
}

TEST_CASE("a generation over two hosts whose member never comes is given up") {
  Job job(4, {{"HORO_CPU_OPERATIONS", "tcp"}});
  const std::vector<Member> all{{0, 0}, {1, 0}, {2, 1}, {3, 1}};
  std::vector<horo::elastic::MembershipCall> calls;
  for (const int worker : {0, 1, 2}) {
    job.start().tell("init");
    calls.push_back(job.await_call(worker));
  }
  job.begin();
  for (const int worker : {0, 1, 2})
    job.answer(calls[static_cast<std::size_t>(worker)], job.answer_for(all, worker, 0));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  job.give_up();
  job.form({{0, 0}, {1, 0}, {2, 1}}, 0);
  for (const int worker : {0, 1, 2})
    CHECK(job[worker].hear() == fmt::format("in 2 {} 3 0", worker));
  job.all({0, 1, 2}, "sum", "sum 6");
}
