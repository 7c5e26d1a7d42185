// SPDX-License-Identifier: Apache-2.0
// The launcher has no place for a worker, or the agent does not answer.
#include "elastic_job.hpp"

#include <catch2/catch.hpp>

using namespace elastic_test;
using horo::elastic::MembershipKind;

TEST_CASE("a worker that is no longer part of the job is told so, with the reason") {
  Job job(1);
  auto& worker = job.start();
  worker.tell("init");
  job.answer(job.await_call(0), {.kind = MembershipKind::removed, .reason = "its host is to go"});
  CHECK(worker.hear() ==
        "failed removed this process is no longer part of the job: its host is to go");
}

TEST_CASE("a launcher that forms no generation says why") {
  Job job(1);
  auto& worker = job.start();
  worker.tell("init");
  job.answer(job.await_call(0),
             {.kind = MembershipKind::refused, .reason = "the reset limit is reached"});
  CHECK(worker.hear() ==
        "failed unavailable the launcher refuses to form a generation: the reset limit is reached");
}

TEST_CASE("an answer that makes no sense is refused") {
  Job job(1);
  auto& worker = job.start();
  worker.tell("init");
  const auto call = job.await_call(0);
  job.set(horo::elastic::answer_key(0, call.attempt), "nonsense");
  CHECK(worker.hear().substr(0, 15) == "failed protocol");
}

TEST_CASE("a worker waits for an agent that is busy for longer than connections may be refused") {
  Job job(1);
  auto& worker = job.start();
  job.store.be_busy(std::chrono::seconds(6));
  worker.tell("init");
  job.answer(job.await_call(0), {.kind = MembershipKind::removed, .reason = "its host is to go"});
  CHECK(worker.hear() ==
        "failed removed this process is no longer part of the job: its host is to go");
}

TEST_CASE("a worker that waits for a generation fails when the store vanishes") {
  Job job(1);
  auto& worker = job.start();
  worker.tell("init");
  job.await_call(0);
  job.store.stop();
  CHECK(worker.hear().substr(0, 63) ==
        "failed unavailable this host's agent of the elastic job does no");
}

TEST_CASE("workers in a meeting fail when the store vanishes") {
  Job job(2);
  auto& worker = job.start();
  worker.tell("init");
  const auto call = job.await_call(0);
  job.begin();
  job.answer(call, job.answer_for({{0}, {1}}, 0, 0));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  job.store.stop();
  CHECK(worker.hear().substr(0, 18) == "failed unavailable");
}

TEST_CASE("a process can end while one of its threads waits for a generation") {
  Job job(1);
  auto& worker = job.start();
  worker.tell("quit");
  job.await_call(0);
  worker.tell("now");
  CHECK(worker.hear() == "(nothing)");
  CHECK(worker.wait() == 0);
}

TEST_CASE("a slot on the agent's board is attached from init to shutdown") {
  Job job(2);
  job.begin_with({0, 0});
  CHECK(job.state_of(1) == horo::RankState::attached);
  job.all({0, 1}, "shutdown", "out");
  CHECK(job.state_of(0) == horo::RankState::detached);
  CHECK(job.state_of(1) == horo::RankState::detached);
}

TEST_CASE("a poison of the agent's board ends the operations of the generation") {
  Job job(2);
  job.begin_with({0, 0});
  job[0].tell("sum");
  horo::poison_board(job.board(), {.rank = horo::Rank{-1}, .cause = horo::LossCause::aborted}, "");
  CHECK(job[0].hear() == "failed peer_lost the job is being stopped: the job was stopped");
}
