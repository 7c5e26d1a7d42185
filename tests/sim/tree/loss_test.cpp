// SPDX-License-Identifier: Apache-2.0
// Hosts that end, freeze, vanish or talk nonsense: all others hear of the same culprit in time.
#include "trainees.hpp"

#include <cstdlib>
#include <random>

#include <catch2/catch.hpp>

using namespace horo;                  // NOLINT(google-build-using-namespace): a test of it
using namespace horo::sim;             // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime::sim;    // NOLINT(google-build-using-namespace): a test of it
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

using runtime::tree::Bye;
using runtime::tree::Heartbeat;
using runtime::tree::LogEntry;
using runtime::tree::LogKind;
using runtime::tree::Loss;
using runtime::tree::Ready;

namespace {

std::uint64_t base_seed() {
  const char* text = std::getenv("HORO_SIM_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
}

bool all_lost(World& world, int but) {
  for (int h = 0; h < world.hosts(); ++h) {
    if (h != but && !world.loss(h)) return false;
  }
  return true;
}

/// All hosts but the culprit have the same loss, which names it.
void check_blame(World& world, int culprit, LossCause cause) {
  for (int h = 0; h < world.hosts(); ++h) {
    if (h == culprit) continue;
    INFO("host " << h);
    REQUIRE(world.loss(h));
    CHECK(world.loss(h)->host == fmt::format("node{}", culprit));
    CHECK(world.loss(h)->rank == Rank{2 * culprit});
    CHECK(world.loss(h)->cause == cause);
  }
}

}  // namespace

TEST_CASE("a host whose processes end is known everywhere within a tenth of a second") {
  for (int culprit = 0; culprit < 13; ++culprit) {
    World world({.hosts = even_hosts(13, 2), .radix = 3});
    world.run(100ms, [] { return false; });
    world.kill(culprit);
    CHECK(world.run(100ms, [&] { return all_lost(world, culprit); }));
    check_blame(world, culprit, LossCause::vanished);
  }
}

TEST_CASE("the agent names the lost rank before its connection is blamed") {
  World world({.hosts = even_hosts(13, 2), .radix = 3});
  const Loss loss{.rank = Rank{9}, .cause = LossCause::signalled, .detail = 9, .host = "node4"};
  world.kill(4);
  world.network().after(20ms, [&world, &loss] { world.poison(11, loss); });
  CHECK(world.run(100ms, [&] { return all_lost(world, 4); }));
  for (int h = 0; h < world.hosts(); ++h) {
    if (h != 4) CHECK(world.loss(h) == loss);
  }
}

TEST_CASE("a frozen host and a cut cable are noticed by missing heartbeats") {
  for (int culprit = 0; culprit < 13; ++culprit) {
    for (const bool cut : {false, true}) {
      World world({.hosts = even_hosts(13, 2), .radix = 3, .heartbeat_timeout = 2s});
      world.run(10s, [] { return false; });
      CHECK_FALSE(world.loss(0));
      cut ? world.cut(culprit) : world.stop(culprit);
      CHECK(world.run(2500ms, [&] { return all_lost(world, culprit); }));
      check_blame(world, culprit, LossCause::host_lost);
    }
  }
}

TEST_CASE("a lost rank on one host poisons all") {
  World world({.hosts = even_hosts(40, 2), .radix = 3});
  const Loss loss{.rank = Rank{31}, .cause = LossCause::exited, .detail = 3, .host = "node15"};
  world.poison(15, loss);
  CHECK(world.run(10ms, [&] { return all_lost(world, -1); }));
  for (int h = 0; h < world.hosts(); ++h) CHECK(world.loss(h) == loss);
}

TEST_CASE("all hosts name the same one of several losses while they are connected") {
  const auto seed = base_seed();
  WARN("HORO_SIM_SEED=" << seed);
  for (std::uint64_t i = 0; i < 200; ++i) {
    INFO("HORO_SIM_SEED=" << seed + i);
    WorldParams params{.hosts = even_hosts(20, 2), .radix = 3, .seed = seed + i};
    params.links.jitter = 2ms;
    World world(params);
    auto& random = world.network().random();
    for (int n = 0; n < 3; ++n) {
      const auto host = static_cast<int>(random() % 20);
      world.network().after(Duration(static_cast<Duration::rep>(random() % 4'000'000)),
                            [&world, host] {
                              world.poison(host, {.rank = Rank{2 * host},
                                                  .cause = LossCause::exited,
                                                  .host = fmt::format("node{}", host)});
                            });
    }
    REQUIRE(world.run(1s, [&] { return all_lost(world, -1); }));
    // A host that was poisoned by its own agent keeps that; the others have the root's.
    std::set<int> named;
    for (int h = 0; h < world.hosts(); ++h) named.insert(world.loss(h)->rank.value());
    CHECK(named.size() <= 3);
    for (int h = 0; h < world.hosts(); ++h) {
      CHECK((world.loss(h) == world.leader(0).loss() || world.loss(h)->rank == Rank{2 * h}));
    }
  }
}

TEST_CASE("no rank is reported lost in a run without faults") {
  const auto seed = base_seed();
  WARN("HORO_SIM_SEED=" << seed);
  for (std::uint64_t i = 0; i < 100; ++i) {
    INFO("HORO_SIM_SEED=" << seed + i);
    WorldParams params{.hosts = even_hosts(12, 2), .radix = 3, .seed = seed + i};
    params.links.jitter = 500us;
    World world(params);
    Trainees trainees(world);
    auto& random = world.network().random();
    const auto culprit = static_cast<int>(random() % 12);
    std::vector<Plan> plans;
    for (int t = 0; t < 30; ++t) {
      plans.push_back({.set = {},
                       .name = fmt::format("{}", t),
                       .signature = vector_of(runtime::Kind::allreduce, 1 + t % 3),
                       .odd = {}});
    }
    trainees.submit(plans, 5ms);
    world.network().after(Duration(static_cast<Duration::rep>(random() % 6'000'000)),
                          [&world, culprit] { world.kill(culprit); });
    REQUIRE(world.run(1s, [&] { return all_lost(world, culprit); }));
    // Whatever each host has, it is the beginning of one log.
    const auto longest = [&world] {
      int best = 0;
      for (int h = 0; h < world.hosts(); ++h) {
        if (world.log(h).records().size() > world.log(best).records().size()) best = h;
      }
      return best;
    }();
    const auto& all = world.log(longest).records();
    for (int h = 0; h < world.hosts(); ++h) {
      const auto& records = world.log(h).records();
      REQUIRE(std::equal(records.begin(), records.end(), all.begin()));
    }
  }
}

TEST_CASE("frames of an older epoch are dropped; malformed and misdirected ones name the sender") {
  const auto inject = [](const std::string& payload) {
    auto world = std::make_unique<World>(
        WorldParams{.hosts = even_hosts(4, 2), .radix = 3, .epoch = Epoch{5}});
    world->inject(0, 2, payload);
    world->run(100ms, [] { return false; });
    return world;
  };
  auto world = inject(encode(Epoch{4}, Loss{.rank = Rank{1}, .cause = LossCause::exited}));
  CHECK_FALSE(world->loss(0));
  CHECK(world->leader(0).counters().stale_frames == 1);
  for (const auto& payload :
       {std::string("\xff\x05", 2), std::string(), encode(Epoch{5}, Ready{.set = {}, .ids = {7}}),
        encode(Epoch{5},
               LogEntry{
                   .set = {}, .kind = LogKind::join, .ranks = runtime::tree::RankRanges::of(0, 1)}),
        encode(Epoch{5},
               runtime::tree::Leave{.set = {}, .ranks = runtime::tree::RankRanges::of(0, 1)}),
        encode(Epoch{5}, runtime::tree::LeaderHello{.host = 2})}) {
    check_blame(*inject(payload), 2, LossCause::corrupted);
  }
}

TEST_CASE("a leader that says goodbye is not lost, and operations that need it end") {
  World world({.hosts = even_hosts(9, 1), .radix = 2});
  world.add_set(SetId{1}, runtime::tree::RankRanges::of(6, 3));
  world.leader(5).leave();
  world.run(100ms, [] { return false; });
  for (int h = 0; h < world.hosts(); ++h) {
    INFO("host " << h);
    CHECK_FALSE(world.loss(h));
    if (h == 5) continue;
    REQUIRE(world.log(h).records().size() == 1);
    CHECK(world.log(h).records()[0].kind == LogKind::left);
    CHECK(world.log(h).records()[0].ranks.contains(Rank{5}));
  }
}
