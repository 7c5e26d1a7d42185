// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/membership_store.hpp"

#include <future>
#include <thread>

#include <catch2/catch.hpp>

#include "base/kv/client.hpp"

using namespace horo;
using namespace horo::launcher;
using elastic::TrainingResumed;

namespace {

Deadline soon() {
  return Deadline::in(SteadyClock::instance(), std::chrono::seconds(30));
}

struct World {
  std::unique_ptr<Loop> loop = Loop::make().value();
  kv::Secret secret = kv::make_secret().value();
  std::vector<TrainingResumed> resumed;
  std::unique_ptr<MembershipStore> store =
      MembershipStore::open(*loop, secret, [this](const TrainingResumed& word) {
        resumed.push_back(word);
      }).value();

  /// Runs the store until `rank`, which has a connection and a thread of its own, returns.
  template <typename Body>
  void run_beside(Body rank) {
    const auto address = store->address_at({}).value();
    auto done = std::async(std::launch::async, [&] {
      auto client = kv::Client::connect(address, secret, soon()).value();
      rank(client);
      loop->post([this] { loop->stop(); });
    });
    loop->run();
    done.get();
  }
};

}  // namespace

TEST_CASE("nonsense under the key of a rank's word is no word") {
  World world;
  world.run_beside([](kv::Client& client) {
    CHECK(client.set("horo/elastic/resumed/1", "nonsense", soon()));
    // Another worker's word under this key.
    const TrainingResumed other{.worker = 2, .generation = 1};
    CHECK(client.set("horo/elastic/resumed/1", encode(other), soon()));
    CHECK(client.set("other", "x", soon()));
  });
  CHECK(world.resumed.empty());
}

TEST_CASE("a rank's word that training goes on is handed over") {
  World world;
  const TrainingResumed word{.worker = 1, .generation = 2, .stood_still_us = 57'000, .repeated = 1};
  world.run_beside([&](kv::Client& client) {
    CHECK(client.set("horo/elastic/resumed/1", encode(word), soon()));
  });
  CHECK(world.resumed == std::vector<TrainingResumed>{word});
}

TEST_CASE("the end of a generation erases what ranks of earlier ones have left") {
  World world;
  const std::vector<std::string> old{"horo/hosts/1/count", "horo/hosts/2/card/1",
                                     "horo/hosts/table/2", "horo/tree/2/0", "horo/sets/2/1/own/7"};
  const std::vector<std::string> kept{
      "horo/hosts/3/open", "horo/hosts/table/3", "horo/tree/3/1", "horo/sets/30/1/own/7",
      "horo/hosts/count",  "horo/tree/x/1",      "mine/1"};
  world.run_beside([&](kv::Client& client) {
    for (const auto& key : old) CHECK(client.set(key, "1", soon()));
    for (const auto& key : kept) CHECK(client.set(key, "1", soon()));
  });
  world.store->clear_before(3);
  world.run_beside([&](kv::Client& client) {
    for (const auto& key : old) CHECK_FALSE(client.find(key, soon()).value());
    for (const auto& key : kept) CHECK(client.find(key, soon()).value());
  });
}
