// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/membership_store.hpp"

#include <future>
#include <thread>

#include <catch2/catch.hpp>

#include "base/kv/client.hpp"

using namespace horo;
using namespace horo::launcher;
using elastic::MembershipAnswer;
using elastic::MembershipCall;
using elastic::MembershipKind;
using elastic::TrainingResumed;

namespace {

Deadline soon() {
  return Deadline::in(SteadyClock::instance(), std::chrono::seconds(30));
}

/// A worker's part: it calls and waits for the answer.
Result<MembershipAnswer> ask(const std::string& address, const kv::Secret& secret,
                             const MembershipCall& call) {
  HORO_TRY(auto client, kv::Client::connect(address, secret, soon()));
  HORO_TRY_STATUS(client.set(elastic::call_key(call.worker), encode(call), soon()));
  HORO_TRY(const auto bytes, client.get(elastic::answer_key(call.worker, call.attempt), soon()));
  return elastic::decode_answer(bytes);
}

/// Runs a store until a worker has its answer.
struct World {
  std::unique_ptr<Loop> loop = Loop::make().value();
  kv::Secret secret = kv::make_secret().value();
  std::unique_ptr<MembershipStore> store;
  std::vector<MembershipCall> calls;
  std::vector<TrainingResumed> resumed;

  template <typename Answer>
  explicit World(Answer answer) {
    store = MembershipStore::open(
                *loop, secret,
                {.on_call =
                     [this, answer](const MembershipCall& call) {
                       calls.push_back(call);
                       answer(*this, call);
                     },
                 .on_resumed = [this](const TrainingResumed& word) { resumed.push_back(word); }})
                .value();
  }

  Result<MembershipAnswer> ask_from_a_worker(const MembershipCall& call) {
    const auto address = store->address_at({}).value();
    auto worker = std::async(std::launch::async, [&, address] {
      auto answer = ask(address, secret, call);
      loop->stop();
      return answer;
    });
    loop->run();
    return worker.get();
  }
};

}  // namespace

TEST_CASE("a member's answer has its place in the generation") {
  World world([](World& self, const MembershipCall& call) {
    GenerationMember member{.worker = static_cast<int>(call.worker), .attempt = call.attempt};
    member.place = {.rank = Rank{1}, .host = 0, .local_rank = LocalRank{1}, .local_size = 2};
    GenerationMember other{.worker = 3};
    other.place = {.rank = Rank{0}, .host = 0, .local_rank = LocalRank{0}, .local_size = 2};
    self.store->answer({.generation = 4, .members = {other, member}, .survivors = 1, .notice = 9});
  });
  const auto answer = world.ask_from_a_worker({.worker = 7, .attempt = 2, .generation = 3});
  REQUIRE(answer);
  CHECK(world.calls == std::vector<MembershipCall>{{7, 2, 3}});
  CHECK(answer->kind == MembershipKind::member);
  CHECK(answer->generation == 4);
  CHECK((answer->rank == 1 && answer->size == 2));
  CHECK((answer->survivors == 1 && answer->notice == 9));
}

TEST_CASE("a worker that gets no place is told why") {
  World world([](World& self, const MembershipCall& call) {
    self.store->turn_away({.worker = static_cast<int>(call.worker),
                           .attempt = call.attempt,
                           .reason = "host b leaves"},
                          MembershipKind::removed);
  });
  const auto answer = world.ask_from_a_worker({.worker = 1, .attempt = 1, .generation = 2});
  REQUIRE(answer);
  CHECK(answer->kind == MembershipKind::removed);
  CHECK(answer->reason == "host b leaves");
}

TEST_CASE("nonsense under a call's key is no call") {
  World world([](World&, const MembershipCall&) {});
  const auto address = world.store->address_at({}).value();
  std::thread worker([&] {
    auto client = kv::Client::connect(address, world.secret, soon()).value();
    CHECK(client.set("horo/elastic/call/1", "nonsense", soon()));
    // Another worker's call under this key.
    CHECK(client.set("horo/elastic/call/1", encode(MembershipCall{.worker = 2}), soon()));
    const TrainingResumed other{.worker = 2, .generation = 1};
    CHECK(client.set("horo/elastic/resumed/1", encode(other), soon()));
    CHECK(client.set("other", "x", soon()));
    world.loop->post([&] { world.loop->stop(); });
  });
  world.loop->run();
  worker.join();
  CHECK(world.calls.empty());
  CHECK(world.resumed.empty());
}

TEST_CASE("a rank's word that training goes on is handed over") {
  World world([](World&, const MembershipCall&) {});
  const TrainingResumed word{.worker = 1, .generation = 2, .stood_still_us = 57'000, .repeated = 1};
  const auto address = world.store->address_at({}).value();
  std::thread worker([&] {
    auto client = kv::Client::connect(address, world.secret, soon()).value();
    CHECK(client.set("horo/elastic/resumed/1", encode(word), soon()));
    world.loop->post([&] { world.loop->stop(); });
  });
  world.loop->run();
  worker.join();
  CHECK(world.resumed == std::vector<TrainingResumed>{word});
}

TEST_CASE("the end of a generation erases what ranks of earlier ones have left") {
  World world([](World& self, const MembershipCall& call) {
    self.store->end_meeting(3);
    self.store->turn_away({.worker = static_cast<int>(call.worker), .attempt = call.attempt},
                          MembershipKind::removed);
  });
  const std::vector<std::string> old{"horo/hosts/1/count", "horo/hosts/2/card/1",
                                     "horo/hosts/table/2", "horo/tree/2/0", "horo/sets/2/1/own/7"};
  const std::vector<std::string> kept{
      "horo/hosts/3/open", "horo/hosts/table/3", "horo/tree/3/1", "horo/sets/30/1/own/7",
      "horo/hosts/count",  "horo/tree/x/1",      "mine/1"};
  const auto address = world.store->address_at({}).value();
  auto worker = std::async(std::launch::async, [&] {
    auto client = kv::Client::connect(address, world.secret, soon()).value();
    for (const auto& key : old) CHECK(client.set(key, "1", soon()));
    for (const auto& key : kept) CHECK(client.set(key, "1", soon()));
    CHECK(ask(address, world.secret, {.worker = 1, .attempt = 1}));
    for (const auto& key : old) CHECK_FALSE(client.find(key, soon()).value());
    for (const auto& key : kept) CHECK(client.find(key, soon()).value());
    world.loop->stop();
  });
  world.loop->run();
  worker.get();
}
