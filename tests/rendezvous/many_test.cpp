// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <sys/resource.h>
#include <vector>

#include <catch2/catch.hpp>

using horo::kv::Op;
using horo::test::RawPeer;
using horo::test::RunningServer;
using horo::test::soon;

namespace {

constexpr int kClients = 1000;

void allow_descriptors() {
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  if (limit.rlim_cur < 4096) {
    limit.rlim_cur = std::min<rlim_t>(4096, limit.rlim_max);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  }
  REQUIRE(limit.rlim_cur > 2 * kClients + 100);
}

}  // namespace

TEST_CASE("a thousand clients find each other") {
  allow_descriptors();
  RunningServer server;
  std::vector<RawPeer> peers;
  for (int i = 0; i < kClients; ++i) {
    peers.emplace_back(server.address());
    REQUIRE(peers.back().shake_hands(server.secret));
  }
  CHECK(server.counts().clients == kClients);

  // Each client waits for the key of the next one, and in the end all wait for one more key.
  int good = 0;
  for (int i = 0; i < kClients; ++i) {
    const auto next = std::to_string((i + 1) % kClients);
    good += peers[static_cast<std::size_t>(i)].send(
        peers[static_cast<std::size_t>(i)].frame({.op = Op::get, .id = 1, .keys = {next}}));
  }
  REQUIRE(server.reaches([](const auto& counts) { return counts.waiting == kClients; }));
  auto setter = server.client();
  for (int i = 0; i < kClients; ++i)
    REQUIRE(setter.set(std::to_string(i), std::to_string(i * 3), soon()));
  for (int i = 0; i < kClients; ++i) {
    const auto response = peers[static_cast<std::size_t>(i)].response();
    good += response && response->value == std::to_string((i + 1) % kClients * 3);
  }
  CHECK(good == 2 * kClients);

  for (auto& peer : peers) {
    good += peer.send(peer.frame({.op = Op::wait, .id = 2, .keys = {"0", "999", "go"}}));
  }
  REQUIRE(server.reaches([](const auto& counts) { return counts.waiting == kClients; }));
  REQUIRE(setter.set("go", "", soon()));
  for (auto& peer : peers) good += peer.response().has_value();
  CHECK(good == 4 * kClients);

  peers.clear();
  CHECK(server.reaches([](const auto& counts) { return counts.clients == 1; }));
}

TEST_CASE("more handshakes than allowed at a time are served one after another") {
  allow_descriptors();
  RunningServer server({.unauthenticated = 8});
  std::vector<RawPeer> peers;
  for (int i = 0; i < 200; ++i) peers.emplace_back(server.address());
  int good = 0;
  for (auto& peer : peers) good += peer.shake_hands(server.secret);
  CHECK(good == 200);
}
