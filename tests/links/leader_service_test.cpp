// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <future>
#include <random>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>

#include <catch2/catch.hpp>

#include "base/kv/socket.hpp"
#include "tests/links/linked_hosts.hpp"

using namespace horo;                  // NOLINT(google-build-using-namespace): a test of it
using namespace horo::links;           // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime::tree;   // NOLINT(google-build-using-namespace): a test of it
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

TEST_CASE("leaders over TCP agree in whatever order ranks submit") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  Cluster cluster(7, 2, 2);
  Hosts hosts(cluster);
  constexpr int kTensors = 40;
  for (int round = 0; round < 5; ++round) {
    std::vector<std::thread> ranks;
    for (int r = 0; r < 14; ++r) {
      ranks.emplace_back([&hosts, r, seed, round] {
        std::vector<int> order(kTensors);
        for (int t = 0; t < kTensors; ++t) order[static_cast<std::size_t>(t)] = t;
        std::shuffle(order.begin(), order.end(),
                     std::mt19937_64(seed + static_cast<unsigned>(100 * round + r)));
        for (const int t : order) hosts.submit(Rank{r}, fmt::format("{}", t), vector_of(t + 1));
      });
    }
    for (auto& rank : ranks) rank.join();
    for (auto& state : hosts.states) {
      REQUIRE(state->wait([round](TestHost& host) {
        std::size_t tensors = 0;
        for (const auto& record : host.records()) tensors += record.names.size();
        return tensors == static_cast<std::size_t>((round + 1) * kTensors);
      }));
    }
  }
  for (auto& state : hosts.states) CHECK(state->records() == hosts[0].records());
}

TEST_CASE("nodes leave one after the other and none is reported lost") {
  Cluster cluster(4, 1, 1);
  Hosts hosts(cluster);
  for (const int h : {1, 3, 0, 2}) {
    hosts[h].leave(Rank{h});
    hosts.node(h).poke();
    hosts.node(h).leave();
  }
  for (auto& state : hosts.states) CHECK_FALSE(state->lost());
}

TEST_CASE("an idle node wakes up for heartbeats only") {
  Cluster cluster(3, 1, 2);
  Hosts hosts(cluster);
  for (int r = 0; r < 3; ++r) hosts.submit(Rank{r}, "x", vector_of(1));
  REQUIRE(hosts.wait(1));
  std::this_thread::sleep_for(100ms);  // Wait until all nodes sleep; more time does no harm.
  const auto before = hosts.node(0).wakes();
  std::this_thread::sleep_for(2s);
  // Two children: one heartbeat in each direction per second.
  CHECK(hosts.node(0).wakes() - before <= 12);
}

TEST_CASE("a peer without the secret gets an error and nothing else") {
  Cluster cluster(2, 1, 2);
  TestHost parent({Rank{0}});
  TestHost child({Rank{1}});
  auto root = std::async(std::launch::async,
                         [&] { return cluster.start(0, cluster.params(0), parent, 500ms); });
  auto params = cluster.params(1);
  params.secret = {9};
  const auto refused = cluster.start(1, params, child);
  REQUIRE_FALSE(refused);
  const auto waited = root.get();
  REQUIRE_FALSE(waited);
  CHECK(waited.error().code == Errc::timed_out);
  CHECK(waited.error().message.find("node1") != std::string::npos);
  CHECK(waited.error().message.find("secret") != std::string::npos);
}

TEST_CASE("the error names the peer's other version") {
  Cluster cluster(2, 1, 2);
  TestHost parent({Rank{0}});
  TestHost child({Rank{1}});
  auto root = std::async(std::launch::async,
                         [&] { return cluster.start(0, cluster.params(0), parent, 500ms); });
  auto params = cluster.params(1);
  params.version = kVersion + 1;
  const auto refused = cluster.start(1, params, child);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::version_mismatch);
  CHECK_FALSE(root.get());
}

TEST_CASE("a peer with another view of the job is refused") {
  Cluster cluster(2, 1, 2);
  TestHost parent({Rank{0}});
  TestHost child({Rank{1}});
  auto root = std::async(std::launch::async,
                         [&] { return cluster.start(0, cluster.params(0), parent, 500ms); });
  auto params = cluster.params(1);
  params.leader.radix = 3;
  CHECK_FALSE(cluster.start(1, params, child, 1s));
  const auto waited = root.get();
  REQUIRE_FALSE(waited);
  CHECK(waited.error().message.find("another list of hosts") != std::string::npos);
}

TEST_CASE("garbage on the port does not keep other peers out") {
  Cluster cluster(3, 1, 2);
  const auto port = cluster.listeners[0].port;
  std::vector<kv::Socket> strangers;
  const auto soon = Deadline::in(SteadyClock::instance(), 5s);
  std::mt19937_64 random(1);
  for (int i = 0; i < 20; ++i) {
    auto stranger = kv::Socket::connect({.host = "127.0.0.1", .port = port}, soon);
    REQUIRE(stranger);
    std::vector<std::uint8_t> bytes(random() % 200);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    REQUIRE(stranger->send(bytes, soon));
    strangers.push_back(std::move(*stranger));
  }
  Hosts hosts(cluster);
  for (int r = 0; r < 3; ++r) hosts.submit(Rank{r}, "x", vector_of(1));
  CHECK(hosts.wait(1));
}

TEST_CASE("a start that is no longer needed ends early") {
  Cluster cluster(2, 1, 2);
  TestHost parent({Rank{0}});
  const auto started =
      LeaderService::start(cluster.params(0), std::move(cluster.listeners[0]), parent,
                           Deadline::in(SteadyClock::instance(), 30s), [] { return true; });
  REQUIRE_FALSE(started);
  CHECK(started.error().code == Errc::peer_lost);
}

TEST_CASE("only a lack of descriptors raises their limit") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit low = before;
  low.rlim_cur = before.rlim_max - 1;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
  Cluster cluster(2, 1, 2);
  TestHost parent({Rank{0}});
  // It is always ready, and fails to give a connection.
  cluster.listeners[0].socket = UniqueFd(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
  CHECK_FALSE(cluster.start(0, cluster.params(0), parent, 50ms));
  rlimit after{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &after) == 0);
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(after.rlim_cur == low.rlim_cur);
}
