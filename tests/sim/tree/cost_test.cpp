// SPDX-License-Identifier: Apache-2.0
// What a step costs, counted: frames, bytes and link latencies.
#include "trainees.hpp"

#include <catch2/catch.hpp>

using namespace horo;                  // NOLINT(google-build-using-namespace): a test of it
using namespace horo::sim;             // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime::sim;    // NOLINT(google-build-using-namespace): a test of it
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

namespace {

constexpr int kTensors = 161;  // ResNet-50's.

/// All ranks submit everything now; how long until the last host has it in its log.
Duration step(World& world, std::uint64_t entries) {
  const auto begin = world.network().now();
  auto last = begin;
  int due = world.hosts();
  world.on_publish([&](int host, SetId set, std::uint64_t /*entry*/) {
    last = world.network().now();
    if (world.log(host, set).published() == entries) --due;
  });
  for (int r = 0; r < world.size(); ++r) {
    for (int t = 0; t < kTensors; ++t) {
      REQUIRE(world.submit(Rank{r}, fmt::format("layer{}.conv.weight", t),
                           vector_of(runtime::Kind::allreduce, 1000 + t)));
    }
  }
  REQUIRE(world.run(10s, [&due] { return due == 0; }));
  const auto took = last - begin;
  REQUIRE(world.run(10s, [&world] {
    for (int h = 0; h < world.hosts(); ++h) {
      if (world.log(h).done() != world.log(h).published()) return false;
    }
    return true;
  }));
  return took;
}

}  // namespace

TEST_CASE("a steady step is one frame up and one down, and far under 1 KiB per leader") {
  World world({.hosts = even_hosts(20, 4), .radix = 4});
  step(world, 1);
  std::vector<std::uint64_t> frames;
  std::vector<std::uint64_t> bytes;
  for (int h = 0; h < world.hosts(); ++h) {
    frames.push_back(world.leader(h).counters().frames_sent);
    bytes.push_back(world.leader(h).counters().bytes_sent);
  }
  step(world, 2);
  for (int h = 0; h < world.hosts(); ++h) {
    const auto& place = world.leader(h).place();
    const auto& now = world.leader(h).counters();
    const auto up = place.parent < 0 ? 0U : 1U;
    CHECK(now.frames_sent - frames[static_cast<std::size_t>(h)] == up + place.children.size());
    CHECK(now.bytes_sent - bytes[static_cast<std::size_t>(h)] < 128);
  }
}

TEST_CASE("a cached step of 10,000 ranks takes six link latencies and the work of the tree") {
  WorldParams params{.hosts = even_hosts(1250, 8)};
  World world(params);
  step(world, 1);
  const auto took = step(world, 2);
  // Six wires, each with a frame to send and one to receive; the root and the leaders below it
  // take in a frame of each of their 16 children, and send one to each.
  const auto& links = params.links;
  const auto wires = 6 * (links.latency + 200ns);
  const auto work = 3 * 17 * (links.send_cost + links.receive_cost);
  CHECK(took <= wires + work);
  CHECK(took >= 6 * links.latency);
}

TEST_CASE("an idle tree sends heartbeats and nothing else") {
  World world({.hosts = even_hosts(10, 1), .radix = 3});
  world.run(60s, [] { return false; });
  for (int h = 0; h < world.hosts(); ++h) {
    const auto& place = world.leader(h).place();
    const auto links = place.children.size() + (place.parent < 0 ? 0 : 1);
    CHECK(world.leader(h).counters().frames_sent >= 58 * links);
    CHECK(world.leader(h).counters().frames_sent <= 61 * links);
    CHECK_FALSE(world.loss(h));
  }
}
