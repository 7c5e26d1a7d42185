// SPDX-License-Identifier: Apache-2.0
// An agent's server for calls, with real connections of workers.
#include "launcher/agent/worker_calls.hpp"

#include <future>

#include <catch2/catch.hpp>

#include "base/kv/client.hpp"

using namespace horo;
using namespace horo::launcher;
using elastic::MembershipAnswer;
using elastic::MembershipCall;
using elastic::MembershipKind;
using Calls = std::vector<MembershipCall>;

namespace {

Deadline soon() {
  return Deadline::in(SteadyClock::instance(), std::chrono::seconds(30));
}

/// The server, the messages that it sends to the launcher, and what the launcher does with them.
struct World {
  std::unique_ptr<Loop> loop = Loop::make().value();
  kv::Secret secret = kv::make_secret().value();
  std::vector<Calls> messages;
  std::function<void(const Calls&)> launcher = [](const Calls&) {};
  std::unique_ptr<WorkerCalls> calls =
      WorkerCalls::open(*loop, secret, [this](const protocol::Called& called) {
        messages.push_back(called.calls);
        launcher(called.calls);
      }).value();

  explicit World(int workers) {
    for (int worker = 0; worker < workers; ++worker)
      calls->note(protocol::Started{Rank{worker}, 100 + worker});
  }

  /// Answers each call with a place in a generation.
  void answer(const Calls& called, std::uint64_t generation) const {
    protocol::Answered order;
    for (const auto& call : called) {
      order.answers.push_back({.worker = call.worker,
                               .attempt = call.attempt,
                               .answer = {.generation = generation, .size = 8}});
    }
    calls->take(order);
  }

  /// Runs the server until `body`, which has a thread of its own, returns.
  template <typename Body>
  void run_beside(Body body) {
    auto done = std::async(std::launch::async, [&] {
      body();
      loop->post([this] { loop->stop(); });
    });
    loop->run();
    done.get();
  }

  kv::Client connect() const {
    return kv::Client::connect(calls->address(), secret, soon()).value();
  }
};

MembershipAnswer ask(kv::Client& client, const MembershipCall& call) {
  const auto bytes = client.set_then_get(elastic::call_key(call.worker), encode(call),
                                         elastic::answer_key(call.worker, call.attempt), soon());
  return elastic::decode_answer(bytes.value()).value();
}

}  // namespace

TEST_CASE("the calls of all workers of a host go to the launcher in one message") {
  World world(3);
  world.launcher = [&](const Calls& called) { world.answer(called, 2); };
  world.run_beside([&] {
    std::vector<std::future<MembershipAnswer>> workers;
    for (std::uint32_t worker = 0; worker < 3; ++worker) {
      workers.push_back(std::async(std::launch::async, [&, worker] {
        auto client = world.connect();
        return ask(client, {.worker = worker, .attempt = 5, .generation = 1});
      }));
    }
    for (auto& worker : workers) CHECK(worker.get().generation == 2);
  });
  // A machine that is busy may let a worker call later than the others.
  std::size_t sent = 0;
  for (const auto& message : world.messages) sent += message.size();
  CHECK(sent == 3);
  CHECK(world.messages.size() <= 3);
}

TEST_CASE("a worker that calls alone is not kept waiting for the others") {
  World world(2);
  world.launcher = [&](const Calls& called) { world.answer(called, 3); };
  world.run_beside([&] {
    auto client = world.connect();
    CHECK(ask(client, {.worker = 1}).generation == 3);
    CHECK(ask(client, {.worker = 1, .attempt = 2, .generation = 3}).generation == 3);
  });
  REQUIRE(world.messages.size() == 2);
  CHECK(world.messages[0] == Calls{{.worker = 1}});
}

TEST_CASE("a process that is no worker of this host is refused by its agent, and goes no further") {
  World world(1);
  world.run_beside([&] {
    auto client = world.connect();
    const auto answer = ask(client, {.worker = 9});
    CHECK(answer.kind == MembershipKind::refused);
    CHECK_THAT(answer.reason, Catch::Contains("worker 9 is not part of this job on this host"));
  });
  CHECK(world.messages.empty());
}

TEST_CASE("a process that does not know the job's secret cannot call") {
  World world(1);
  world.run_beside([&] {
    const auto client =
        kv::Client::connect(world.calls->address(), kv::make_secret().value(), soon());
    REQUIRE_FALSE(client);
    CHECK(client.error().code == Errc::permission_denied);
  });
  CHECK(world.messages.empty());
}

TEST_CASE("nonsense under a call's key is no call") {
  World world(3);
  world.run_beside([&] {
    auto client = world.connect();
    CHECK(client.set("horo/elastic/call/1", "nonsense", soon()));
    // Another worker's call under this key.
    CHECK(client.set("horo/elastic/call/1", encode(MembershipCall{.worker = 2}), soon()));
    CHECK(client.set("other", "x", soon()));
  });
  CHECK(world.messages.empty());
}

TEST_CASE("the call of a worker that ends before it was sent is dropped") {
  World world(2);
  world.run_beside([&] {
    auto client = world.connect();
    CHECK(client.set(elastic::call_key(0), encode(MembershipCall{.worker = 0}), soon()));
    std::promise<void> ended;
    world.loop->post([&] {
      world.calls->note(protocol::Exited{{.rank = Rank{0}}});
      ended.set_value();
    });
    ended.get_future().wait();
  });
  // It was sent at most before the end.
  CHECK(world.messages.size() <= 1);
  const auto before = world.messages.size();
  world.run_beside([&] {
    auto client = world.connect();
    CHECK(client.set(elastic::call_key(0), encode(MembershipCall{.worker = 0, .attempt = 2}),
                     soon()));
  });
  CHECK(world.messages.size() == before);
}

TEST_CASE("workers that meet in a generation hear of its end from their agent") {
  World world(1);
  world.run_beside([&] {
    auto client = world.connect();
    world.loop->post([&] { world.calls->take(protocol::EndMeeting{7}); });
    CHECK(client.get(elastic::over_key(7), soon()));
  });
}

TEST_CASE("the ends of old generations are forgotten") {
  World world(1);
  for (std::uint64_t generation = 1; generation <= 40; ++generation)
    world.calls->take(protocol::EndMeeting{generation});
  world.run_beside([&] {
    auto client = world.connect();
    CHECK_FALSE(client.find(elastic::over_key(1), soon()).value());
    CHECK_FALSE(client.find(elastic::over_key(24), soon()).value());
    CHECK(client.find(elastic::over_key(25), soon()).value());
    CHECK(client.find(elastic::over_key(40), soon()).value());
  });
}

TEST_CASE(
    "a process that is no worker and calls again and again does not fill the agent's memory") {
  World world(1);
  world.run_beside([&] {
    auto client = world.connect();
    for (std::uint32_t attempt = 1; attempt <= 100; ++attempt)
      CHECK(ask(client, {.worker = 9, .attempt = attempt}).kind == MembershipKind::refused);
    CHECK_FALSE(client.find(elastic::answer_key(9, 1), soon()).value());
    CHECK_FALSE(client.find(elastic::answer_key(9, 36), soon()).value());
    CHECK(client.find(elastic::answer_key(9, 37), soon()).value());
    CHECK(client.find(elastic::answer_key(9, 100), soon()).value());
  });
}
