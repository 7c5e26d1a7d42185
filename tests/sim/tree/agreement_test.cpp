// SPDX-License-Identifier: Apache-2.0
// Hosts agree: the same log everywhere, nothing lost, nothing twice, whatever the order.
// HORO_SIM_SEED repeats a run.
#include "trainees.hpp"

#include <cstdlib>
#include <optional>
#include <random>

#include <catch2/catch.hpp>

using namespace horo;                  // NOLINT(google-build-using-namespace): a test of it
using namespace horo::sim;             // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime::sim;    // NOLINT(google-build-using-namespace): a test of it
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

using runtime::Kind;
using runtime::tree::LogKind;
using runtime::tree::RankRanges;

namespace {

std::uint64_t base_seed() {
  const char* text = std::getenv("HORO_SIM_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
}

/// Hosts with 1 to 5 ranks, which are dealt out at random.
std::vector<runtime::tree::HostRanks> uneven_hosts(std::mt19937_64& random) {
  const auto count = 1 + random() % 12;
  std::vector<runtime::tree::HostRanks> hosts(count);
  int next = 0;
  for (std::size_t h = 0; h < count; ++h) {
    hosts[h].name = fmt::format("node{}", h);
    hosts[h].ranks.emplace_back(next++);
  }
  for (auto more = random() % (4 * count); more > 0; --more) {
    auto& host = hosts[random() % count];
    if (host.ranks.size() < 5) host.ranks.emplace_back(next++);
  }
  return hosts;
}

WorldParams draw_params(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  WorldParams params{.hosts = uneven_hosts(random)};
  params.radix = 1 + static_cast<int>(random() % 5);
  params.rules.fusion_threshold = std::array<std::uint64_t, 3>{0, 256, 1 << 20}[random() % 3];
  params.rules.depth = 1 + random() % 3;
  params.rules.most_names = std::array<std::size_t, 3>{1, 16, 1 << 20}[random() % 3];
  if (random() % 3 == 0) params.rules.cycle = 200us;
  params.links.jitter = std::array<Duration, 3>{0us, 100us, 3ms}[random() % 3];
  params.run_time = std::array<Duration, 3>{0us, 20us, 1ms}[random() % 3];
  params.room = 1 + random() % 4;
  params.seed = seed;
  return params;
}

std::vector<Plan> draw_plans(World& world, std::vector<SetId> sets, int round) {
  auto& random = world.network().random();
  std::vector<Plan> plans;
  for (const auto set : sets) {
    const auto count = 1 + random() % 20;
    for (std::uint64_t i = 0; i < count; ++i) {
      // Some names are new in each round, some come back, some of those with another shape.
      const bool fresh = random() % 4 == 0;
      const auto kind = random() % 5 == 0 ? Kind::allgather : Kind::allreduce;
      Plan plan{.set = set,
                .name = fmt::format(
                    "{}{}", random() % 2 == 0 ? "tiny" : "large",
                    fresh ? fmt::format("{}.{}.{}", set, round, i) : fmt::format("{}.{}", set, i)),
                .signature = vector_of(kind, static_cast<std::int64_t>(1 + i + random() % 8 / 7)),
                .odd = {}};
      plans.push_back(std::move(plan));
    }
  }
  return plans;
}

/// Makes some ranks disagree where a set has at least two.
void spoil(World& world, std::vector<Plan>& plans, const std::vector<RankRanges>& members) {
  auto& random = world.network().random();
  for (auto& plan : plans) {
    const auto& set = members[plan.set.index()];
    if (random() % 6 != 0 || set.size() < 2) continue;
    std::vector<int> all;
    for (int r = 0; r < world.size(); ++r) {
      if (set.contains(Rank{r})) all.push_back(r);
    }
    plan.odd.insert(all[random() % all.size()]);
  }
}

void run_rounds(std::uint64_t seed) {
  INFO("HORO_SIM_SEED=" << seed);
  World world(draw_params(seed));
  auto& random = world.network().random();
  std::vector<SetId> sets{SetId{0}};
  std::vector<RankRanges> members{RankRanges::of(0, world.size())};
  for (auto more = random() % 4; more > 0; --more) {
    RankRanges some;
    for (int r = 0; r < world.size(); ++r) {
      if (random() % 2 == 0) some.add(Rank{r});
    }
    if (some.empty()) continue;
    sets.emplace_back(static_cast<std::uint32_t>(sets.size()));
    members.push_back(some);
    world.add_set(sets.back(), some, 2ms);
  }
  // A set exists where its members run before they submit to it.
  world.run(3ms, [] { return false; });
  Trainees trainees(world);
  std::vector<std::size_t> tensors(sets.size());
  for (int round = 0; round < 4; ++round) {
    auto plans = draw_plans(world, sets, round);
    spoil(world, plans, members);
    for (const auto set : sets) {
      for (int h = 0; h < world.hosts(); ++h) {
        if (world.has_log(h, set)) world.log(h, set).forget_records();
      }
      tensors[set.index()] = static_cast<std::size_t>(
          std::count_if(plans.begin(), plans.end(), [set](const Plan& p) { return p.set == set; }));
    }
    trainees.submit(plans, 2ms);
    const bool done = world.run(10s, [&] {
      return std::all_of(sets.begin(), sets.end(),
                         [&](SetId set) { return trainees.all_have(set, tensors[set.index()]); });
    });
    REQUIRE(done);
    for (const auto set : sets) REQUIRE(check_logs(world, set, plans) == "");
  }
  for (int h = 0; h < world.hosts(); ++h) REQUIRE_FALSE(world.loss(h));
}

/// One tensor that is submitted last by one rank below each child of the root.
struct LateStep {
  std::vector<int> last;       ///< By child: that rank.
  std::vector<Duration> late;  ///< By child: when it submits, after `start`.
  TimePoint start{};
};

/// With a radix of 2 and 2 ranks on each of 7 hosts, the root's children are the hosts 1 and 4, and
/// the hosts 2 and 3 are below host 1.
LateStep submit_with_late_ranks(World& world) {
  auto& random = world.network().random();
  LateStep step{.start = world.network().now()};
  for (const int first : {2, 8}) {
    step.last.push_back(first + static_cast<int>(random() % 6));
    step.late.emplace_back(10ms + Duration(static_cast<Duration::rep>(random() % 10'000'000)));
  }
  for (int r = 0; r < world.size(); ++r) {
    const auto at = r == step.last[0] ? step.late[0]
                    : r == step.last[1]
                        ? step.late[1]
                        : Duration(static_cast<Duration::rep>(random() % 5'000'000));
    world.network().after(
        at, [&world, r] { REQUIRE(world.submit(Rank{r}, "x", vector_of(Kind::allreduce, 8))); });
  }
  return step;
}

/// Runs until all hosts have run `entries` entries. Returns when the root's host got the last one.
TimePoint run_to_entry(World& world, std::uint64_t entries) {
  TimePoint agreed{};
  REQUIRE(world.run(1s, [&] {
    if (agreed == TimePoint{} && world.log(0).published() == entries)
      agreed = world.network().now();
    for (int h = 0; h < world.hosts(); ++h) {
      if (world.log(h).done() < entries) return false;
    }
    return true;
  }));
  return agreed;
}

void check_arrivals(World& world, const LateStep& step, TimePoint agreed) {
  const auto& all = world.log(0).arrivals();
  REQUIRE(all.contains("x"));
  const auto& shown = all.at("x");
  REQUIRE(shown.size() == 2);
  for (std::size_t child = 0; child < 2; ++child) {
    const auto found = std::find_if(shown.begin(), shown.end(), [&](const auto& one) {
      return one.rank == Rank{step.last[child]};
    });
    REQUIRE(found != shown.end());
    // Up to the time that two frames take.
    const auto measured = agreed - found->ago - step.start;
    REQUIRE(measured >= step.late[child] - 1us);
    REQUIRE(measured - step.late[child] < 1ms);
  }
}

/// Every rank submits ten tensors within a millisecond; `leaver` only five.
void submit_ten(World& world, std::optional<Rank> leaver = std::nullopt) {
  for (int t = 0; t < 10; ++t) {
    for (int r = 0; r < world.size(); ++r) {
      if (t >= 5 && Rank{r} == leaver) continue;
      world.network().after(
          Duration(static_cast<Duration::rep>(world.network().random()() % 1'000'000)),
          [&world, r, t] {
            world.submit(Rank{r}, fmt::format("t{}", t), vector_of(Kind::allreduce, 1));
          });
    }
  }
}

}  // namespace

TEST_CASE("all hosts get the same log, with every tensor exactly once") {
  const auto seed = base_seed();
  WARN("HORO_SIM_SEED=" << seed);
  for (std::uint64_t i = 0; i < 300; ++i) run_rounds(seed + i);
}

TEST_CASE("the root learns which rank of each child's hosts submitted last, and when") {
  const auto seed = base_seed();
  WARN("HORO_SIM_SEED=" << seed);
  for (std::uint64_t i = 0; i < 50; ++i) {
    INFO("HORO_SIM_SEED=" << seed + i);
    World world({.hosts = even_hosts(7, 2), .radix = 2, .seed = seed + i});
    const bool wanted = i % 5 != 0;
    world.want_arrivals(wanted);
    std::uint64_t told = 0;
    world.on_crossing([&told](const Crossing& crossing) {
      const auto envelope = runtime::tree::decode(as_bytes(crossing.payload));
      if (envelope && std::holds_alternative<runtime::tree::Arrived>(envelope->frame)) ++told;
    });
    for (std::uint64_t entries = 1; entries <= 4; ++entries) {
      const auto step = submit_with_late_ranks(world);
      const auto agreed = run_to_entry(world, entries);
      if (!wanted) {
        REQUIRE(world.log(0).arrivals().empty());
        REQUIRE(told == 0);
      } else if (entries > 1) {
        // The first frames may come from hosts that have not heard yet that arrivals are shown.
        check_arrivals(world, step, agreed);
      }
    }
  }
}

TEST_CASE("sets that share ranks see their entries in one order") {
  const auto seed = base_seed();
  WARN("HORO_SIM_SEED=" << seed);
  for (std::uint64_t i = 0; i < 50; ++i) {
    INFO("HORO_SIM_SEED=" << seed + i);
    WorldParams params{.hosts = even_hosts(4, 1), .radix = 2, .seed = seed + i};
    params.links.jitter = 1ms;
    World world(params);
    world.add_set(SetId{1}, RankRanges::of(0, 3));
    world.add_set(SetId{2}, RankRanges::of(1, 3));
    std::vector<std::vector<std::uint64_t>> order(4);
    world.on_publish([&order](int host, SetId set, std::uint64_t entry) {
      if (set != SetId{})
        order[static_cast<std::size_t>(host)].push_back(set.value() * 1000 + entry);
    });
    Trainees trainees(world);
    std::vector<Plan> plans;
    for (int t = 0; t < 10; ++t) {
      for (const auto set : {SetId{1}, SetId{2}}) {
        plans.push_back({.set = set,
                         .name = fmt::format("{}", t),
                         .signature = vector_of(Kind::broadcast, t + 1),
                         .odd = {}});
        plans.back().signature.root = t;  // Nothing fuses.
      }
    }
    trainees.submit(plans, 5ms);
    REQUIRE(world.run(
        1s, [&] { return trainees.all_have(SetId{1}, 10) && trainees.all_have(SetId{2}, 10); }));
    REQUIRE(order[1].size() == 20);
    REQUIRE(order[1] == order[2]);
  }
}

TEST_CASE("ranks join in any order and all hosts learn which rank was last") {
  const auto seed = base_seed();
  WARN("HORO_SIM_SEED=" << seed);
  for (std::uint64_t i = 0; i < 100; ++i) {
    INFO("HORO_SIM_SEED=" << seed + i);
    World world(draw_params(seed + i));
    auto& random = world.network().random();
    // Rank r takes part in the first steps[r] tensors and joins then.
    std::vector<int> steps;
    for (int r = 0; r < world.size(); ++r) steps.push_back(static_cast<int>(random() % 12));
    const int most = *std::max_element(steps.begin(), steps.end());
    for (int r = 0; r < world.size(); ++r) {
      Duration when{};
      for (int t = 0; t <= steps[static_cast<std::size_t>(r)]; ++t) {
        when += Duration(static_cast<Duration::rep>(random() % 500'000));
        world.network().after(when, [&world, &steps, r, t] {
          if (t == steps[static_cast<std::size_t>(r)]) {
            world.join(Rank{r});
          } else {
            REQUIRE(
                world.submit(Rank{r}, fmt::format("t{}", t), vector_of(Kind::allreduce, t + 1)));
          }
        });
      }
    }
    const auto joined = [&world](int h) {
      const auto& records = world.log(h).records();
      return !records.empty() && records.back().kind == LogKind::join;
    };
    REQUIRE(world.run(10s, [&] {
      for (int h = 0; h < world.hosts(); ++h) {
        if (!joined(h)) return false;
      }
      return true;
    }));
    std::vector<Plan> plans;
    for (int t = 0; t < most; ++t) plans.push_back({.set = {}, .name = fmt::format("t{}", t)});
    REQUIRE(check_logs(world, SetId{}, plans) == "");
    // And all can go on together.
    world.run(10ms, [] { return false; });
    for (int h = 0; h < world.hosts(); ++h) world.log(h).forget_records();
    Trainees trainees(world);
    const std::vector<Plan> more{
        {.set = {}, .name = "after", .signature = vector_of(Kind::allgather, 3)}};
    trainees.submit(more, 1ms);
    REQUIRE(world.run(10s, [&] { return trainees.all_have(SetId{}, 1); }));
    REQUIRE(check_logs(world, SetId{}, more) == "");
  }
}

TEST_CASE("all hosts change their tuning between the same two entries") {
  const auto seed = base_seed();
  WARN("HORO_SIM_SEED=" << seed);
  for (std::uint64_t i = 0; i < 100; ++i) {
    INFO("HORO_SIM_SEED=" << seed + i);
    World world(draw_params(seed + i));
    auto& random = world.network().random();
    submit_ten(world);
    const horo::runtime::Tuning alone{.fusion_threshold = 0, .cycle_ns = 1000};
    world.network().after(
        Duration(static_cast<Duration::rep>(random() % 1'000'000)),
        [&world, &alone] { world.leader(0).change_tuning(SetId{}, alone, world.network().now()); });
    const auto tensors = [&world](int h) {
      std::size_t count = 0;
      for (const auto& record : world.log(h).records()) count += record.names.size();
      return count;
    };
    REQUIRE(world.run(10s, [&] {
      for (int h = 0; h < world.hosts(); ++h) {
        if (tensors(h) < 10 || world.log(h).records().size() < 2) return false;
      }
      return true;
    }));
    world.run(10ms, [] { return false; });
    bool changed = false;
    for (const auto& record : world.log(0).records()) {
      if (changed) CHECK(record.names.size() == 1);
      if (record.kind != LogKind::tuning) continue;
      CHECK_FALSE(changed);
      CHECK(record.tuning == alone);
      changed = true;
    }
    CHECK(changed);
    for (int h = 0; h < world.hosts(); ++h) CHECK(world.log(h).records() == world.log(0).records());
  }
}

TEST_CASE("all hosts get the inputs of a small sum in rank order, whatever the tree") {
  for (const int radix : {1, 2, 16}) {
    World world({.hosts = even_hosts(7, 3), .radix = radix});
    std::string everybody;
    for (int r = 0; r < world.size(); ++r) everybody.append(4, static_cast<char>(r));
    for (std::uint64_t round = 0; round < 3; ++round) {
      for (int r = 0; r < world.size(); ++r)
        REQUIRE(world.submit(Rank{r}, "tiny", vector_of(Kind::allreduce, 1)));
      REQUIRE(world.run(10s, [&] {
        for (int h = 0; h < world.hosts(); ++h) {
          if (world.log(h).done() <= round) return false;
        }
        return true;
      }));
      for (int h = 0; h < world.hosts(); ++h) {
        const auto& record = world.log(h).records().back();
        CHECK(record.kind == (round == 0 ? LogKind::work : LogKind::carried));
        if (round > 0) CHECK(record.inputs == std::vector{everybody});
      }
    }
  }
}

TEST_CASE("hosts whose ranks are mixed carry no inputs") {
  World world({.hosts = {{.name = "a", .ranks = {Rank{0}, Rank{2}}},
                         {.name = "b", .ranks = {Rank{1}, Rank{3}}}}});
  for (std::uint64_t round = 0; round < 2; ++round) {
    for (int r = 0; r < world.size(); ++r)
      REQUIRE(world.submit(Rank{r}, "tiny", vector_of(Kind::allreduce, 1)));
    REQUIRE(
        world.run(10s, [&] { return world.log(0).done() > round && world.log(1).done() > round; }));
    CHECK(world.log(1).records().back().kind == LogKind::work);
  }
}

TEST_CASE("all hosts see that a rank leaves at the same place of the log") {
  const auto seed = base_seed();
  std::size_t most = 0;
  WARN("HORO_SIM_SEED=" << seed);
  for (std::uint64_t i = 0; i < 100; ++i) {
    INFO("HORO_SIM_SEED=" << seed + i);
    World world(draw_params(seed + i));
    auto& random = world.network().random();
    const auto leaver = Rank{static_cast<int>(random() % static_cast<std::uint64_t>(world.size()))};
    submit_ten(world, leaver);
    world.network().after(1ms, [&world, leaver] { world.leave(leaver); });
    REQUIRE(world.run(10s, [&] {
      for (int h = 0; h < world.hosts(); ++h) {
        const auto& records = world.log(h).records();
        if (records.empty() || records.back().kind != LogKind::left) return false;
      }
      return true;
    }));
    // The log has no entry after the leave, and none without the rank that left.
    std::size_t tensors = 0;
    for (const auto& record : world.log(0).records()) tensors += record.names.size();
    CHECK(tensors <= 5);
    most = std::max(most, tensors);
    world.run(10ms, [] { return false; });
    for (int h = 0; h < world.hosts(); ++h) {
      REQUIRE(world.log(h).records() == world.log(0).records());
      CHECK(world.log(h).records().back().ranks == RankRanges::of(leaver.value(), 1));
    }
  }
  CHECK(most == 5);
}
