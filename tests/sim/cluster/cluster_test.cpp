// SPDX-License-Identifier: Apache-2.0
// Described clusters: the file and what is wrong with it, and jobs on small ones.
#include <cstring>
#include <filesystem>

#include <catch2/catch.hpp>

#include "apps/common/cluster_file.hpp"
#include "runtime/backends/flat/combine.hpp"
#include "runtime/simulator/cluster/cluster_run.hpp"
#include "runtime/simulator/cluster/predict.hpp"

using namespace horo;
using namespace horo::runtime;
using namespace horo::runtime::sim;
using namespace std::chrono_literals;

namespace {

Cluster cluster_of(const std::string& text) {
  auto cluster = apps::parse_cluster(text, "c.yaml");
  if (!cluster) FAIL(cluster.error().message);
  return *cluster;
}

std::string fault_of(const std::string& text) {
  const auto cluster = apps::parse_cluster(text, "c.yaml");
  REQUIRE_FALSE(cluster);
  CHECK(cluster.error().code == Errc::invalid_argument);
  return cluster.error().message;
}

}  // namespace

TEST_CASE("a cluster file describes hosts, links and failures") {
  const auto cluster = cluster_of(
      "hosts:\n  - {count: 2, ranks: 8}\n  - {ranks: 1, latency_us: 100, gbit_per_s: 1}\n"
      "links: {latency_us: 20, gbit_per_s: 40, jitter_us: 2.5}\ntree_radix: 4\nsums: [8, 1e6]\n"
      "failures:\n  - {at_s: 0.5, host: 2, how: is_cut}\n");
  CHECK(cluster.hosts() == 3);
  CHECK(cluster.ranks() == 17);
  CHECK(cluster.groups[0].link.latency == 20us);
  CHECK(cluster.groups[0].link.bytes_per_second == 5e9);
  CHECK(cluster.groups[1].link.latency == 100us);
  CHECK(cluster.groups[1].link.bytes_per_second == 1.25e8);
  CHECK(cluster.jitter == 2500ns);
  CHECK(cluster.radix == 4);
  CHECK(cluster.sums == std::vector<std::uint64_t>{8, 1'000'000});
  REQUIRE(cluster.failures.size() == 1);
  CHECK(cluster.failures[0].at == 500ms);
  CHECK(cluster.failures[0].how == HostFailure::How::is_cut);
}

TEST_CASE("a fault of a cluster file has its line, its key, its value and what is allowed") {
  CHECK(fault_of("links: {latency_us: 5}\n") == "c.yaml:1: hosts is missing; add it");
  CHECK(fault_of("hosts:\n  - ranks: 0\n") ==
        "c.yaml:2: hosts[0].ranks is '0'; it must be a whole number from 1 to 64");
  CHECK(fault_of("hosts:\n  - ranks: 2.5\n").find("ranks is '2.5'") != std::string::npos);
  CHECK(fault_of("hosts:\n  - ranks: 2\nlinks:\n  latency_us: fast\n") ==
        "c.yaml:4: links.latency_us is 'fast'; it must be a number from 0 to 1000000");
  CHECK(fault_of("hosts:\n  - rank: 2\n") ==
        "c.yaml:2: there is no key 'hosts[0].rank'; hosts[0] has count, ranks, latency_us, "
        "gbit_per_s, burst_bytes");
  CHECK(fault_of("hosts: 3\n") == "c.yaml:1: hosts is '3'; it must be a list");
  CHECK(fault_of("hosts:\n  - ranks: 2\nfailures:\n  - {host: 1}\n") ==
        "c.yaml:4: failures[0].host is '1'; it must be a whole number from 0 to 0");
  CHECK(fault_of("hosts:\n  - ranks: 2\nfailures:\n  - {host: 0, how: melts}\n") ==
        "c.yaml:4: failures[0].how is 'melts'; it must be one of dies, is_cut, stops");
  CHECK(fault_of("hosts:\n  - ranks: 2\nlaunch: {jump_host: perhaps}\n") ==
        "c.yaml:3: launch.jump_host is 'perhaps'; it must be true or false");
  CHECK(fault_of("hosts:\n  - ranks: 2\nsums: [7]\n").find("c.yaml:3: sums[0] is '7'") == 0);
  CHECK(fault_of("hosts:\n  - {count: 90000, ranks: 64}\n").find("5760000 ranks; at most") !=
        std::string::npos);
  CHECK(fault_of("hosts: [\n").find("the file must be YAML") != std::string::npos);
  CHECK(fault_of("").find("c.yaml:") == 0);
  CHECK(apps::read_cluster("/nonexistent.yaml").error().message.find("/nonexistent.yaml") !=
        std::string::npos);
}

TEST_CASE("what the simulator cannot hold is a fault of the file") {
  CHECK(fault_of("hosts:\n  - {count: 2, ranks: 65}\n") ==
        "c.yaml:2: hosts[0].ranks is '65'; it must be a whole number from 1 to 64");
  const std::string hosts = "hosts: [{count: 2, ranks: 2, gbit_per_s: 0.001}]\n";
  CHECK(fault_of(hosts + "training: {compute_ms: 50000000, tensors: [4]}\n")
            .starts_with(
                "c.yaml:2: training.compute_ms is '50000000'; it must be a number from 0 to"));
  CHECK(fault_of(hosts + "sums: [4000000000]\n")
            .starts_with("c.yaml: sums: 4000000000 bytes take 32000 s on the slowest link of 0.001 "
                         "gbit_per_s; at most 3600 s are simulated"));
  CHECK(fault_of(hosts + "training: {compute_ms: 1, tensors: [{bytes: 4000000, count: 1000}]}\n")
            .starts_with("c.yaml: training.tensors: 4000000000 bytes"));
}

TEST_CASE("sums at the limit are simulated") {
  const auto cluster = cluster_of(
      "hosts: [{count: 2, ranks: 2, gbit_per_s: 0.001}]\n"
      "training: {compute_ms: 3600000, tensors: [400000000]}\n");
  StepPredictor predictor(cluster);
  CHECK(predictor.sum_times(400'000'000).ends.front() > std::chrono::minutes(20));
}

TEST_CASE("the example clusters can be read") {
  int files = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(HORO_TEST_CLUSTERS)) {
    if (!file.is_regular_file()) continue;
    const auto cluster = apps::read_cluster(file.path());
    if (!cluster) FAIL_CHECK(cluster.error().message);
    ++files;
  }
  CHECK(files >= 5);
}

namespace {

constexpr int kRanks = 9;
constexpr std::uint64_t kElements = 5000;

/// One rank's sum of i % 100 + rank, with the real loop. Empty: it failed.
std::vector<float> sum_of(SimWire& wire, Algorithm algorithm, int rank) {
  const Signature like{.kind = Kind::allreduce, .dtype = DType::f32};
  const auto plan = make_allreduce({.position = rank, .size = kRanks}, algorithm, kElements, 4);
  std::vector<std::byte> memory(plan.memory);
  auto* const values = reinterpret_cast<float*>(memory.data());
  for (std::uint64_t i = 0; i < kElements; ++i)
    values[i] = static_cast<float>(i % 100) + static_cast<float>(rank);
  std::vector<std::unique_ptr<PendingMessage>> messages;
  const auto combine = [&](const Combine& one) { runtime::run(one, like, kRanks, memory.data()); };
  const ScheduleRun run{.segment = static_cast<std::uint64_t>(algorithm),
                        .memory = memory.data(),
                        .combine = combine};
  if (!run_schedule(*wire.transport(rank), plan, run, messages)) return {};
  std::vector<float> result(kElements);
  std::memcpy(result.data(), memory.data() + plan.result, kElements * 4);
  return result;
}

}  // namespace

TEST_CASE("the real loop over the simulated network moves and adds the right bytes") {
  Network network({}, 1);
  network.use({.hosts = std::vector<Uplink>(3), .inside = {}});
  SimWire wire(network, {0, 0, 0, 1, 1, 1, 2, 2, 2});
  for (const auto algorithm :
       {Algorithm::direct, Algorithm::ring, Algorithm::doubling, Algorithm::halving_doubling}) {
    std::vector<std::vector<float>> results(kRanks);
    std::vector<std::unique_ptr<Fiber>> fibers;
    for (int r = 0; r < kRanks; ++r) {
      fibers.push_back(std::make_unique<Fiber>(
          [&, r] { results[static_cast<std::size_t>(r)] = sum_of(wire, algorithm, r); }));
      network.after({}, [fiber = fibers.back().get()] { fiber->resume(); });
    }
    while (network.step()) {
    }
    for (const auto& result : results) {
      REQUIRE(result.size() == kElements);
      for (std::uint64_t i = 0; i < kElements; ++i)
        REQUIRE(result[i] == static_cast<float>(kRanks * (i % 100) + 36));
    }
  }
}

TEST_CASE("a link carries no more than its rate, and messages of all ranks of a host share it") {
  Network network({.overhead_bytes = 0, .packet_overhead = 0}, 1);
  network.use({.hosts = {{1ms, 1e6}, {3ms, 1e9}, {1ms, 1e6}}, .inside = {1us, 1e9}});
  std::vector<TimePoint> arrivals;
  const auto note = [&] { arrivals.push_back(network.now()); };
  network.carry(0, 1, 1000, {}, note);
  network.carry(0, 1, 1000, {}, note);  // After the first one has left.
  network.carry(2, 1, 1000, {}, note);  // Another sender is not in the way.
  while (network.step()) {
  }
  CHECK(arrivals == std::vector{TimePoint{3ms}, TimePoint{3ms}, TimePoint{4ms}});
  arrivals.clear();
  // Two senders share the receiver's link.
  const auto begin = network.now();
  network.carry(0, 2, 1000, begin, note);
  network.carry(1, 2, 1000, begin, note);
  while (network.step()) {
  }
  CHECK(arrivals.back() >= begin + 3ms);
}

TEST_CASE("each packet of a frame has headers, which use the link too") {
  Network network({.overhead_bytes = 86, .packet_bytes = 1448, .packet_overhead = 66}, 1);
  network.use({.hosts = {{1ms, 1e6}, {1ms, 1e6}}, .inside = {}});
  TimePoint arrival;
  // Three packets.
  network.carry(0, 1, 3000, {}, [&] { arrival = network.now(); });
  while (network.step()) {
  }
  CHECK(network.sent(0) == 3000 + 86 + 2 * 66);
  CHECK(arrival == TimePoint{1ms + std::chrono::microseconds(3000 + 86 + 2 * 66)});
}

TEST_CASE("a large sum by hosts moves all its bytes over each link") {
  ClusterRun run(cluster_of("hosts: [{count: 4, ranks: 2}]\nlinks: {gbit_per_s: 1}\n"));
  run.start();
  constexpr std::uint64_t kBytes = 16 << 20;
  const auto sum = run.sum(kBytes);
  CHECK(sum.path == "by hosts");
  // Three quarters to add them, and three quarters to spread the sums.
  CHECK(sum.most_sent > kBytes * 3 / 2);
  CHECK(sum.most_sent < kBytes * 3 / 2 * 106 / 100);
  CHECK(sum.again >= sum.link);
}

TEST_CASE("1,024 ranks on 128 hosts start with little through the store, and sum at once") {
  const auto cluster =
      apps::read_cluster(std::string(HORO_TEST_CLUSTERS) + "/1024-ranks.yaml").value();
  ClusterRun run(cluster);
  const auto start = run.start();
  CHECK(start.store.bytes_in + start.store.bytes_out < 2'000'000);
  // The number of hosts and their table; the keys of leaders, addresses and sets are erased.
  CHECK(start.keys_left <= 2);
  const auto agreed = run_agreement(run.world(), 1);
  const auto sum = run.sum(4);
  CHECK(start.connected + agreed.latency + sum.first < 5s);
  CHECK(sum.again < sum.first);
  CHECK(sum.algorithm == "doubling");
  // The tree of addresses, and ten partners of a sum by doubling.
  CHECK(run.most_connections() <= 64);
  const auto large = run.sum(1U << 20U);
  CHECK(large.path == "by hosts");
  CHECK(large.most_sent < 3U << 20U);
}

TEST_CASE("a described cluster runs the same each time, and its survivors learn of a loss") {
  const auto cluster = apps::read_cluster(std::string(HORO_TEST_CLUSTERS) + "/uneven.yaml").value();
  const auto first = run_cluster(cluster);
  const auto second = run_cluster(cluster);
  CHECK(to_json(cluster, first) == to_json(cluster, second));
  REQUIRE(first.losses.size() == 1);
  // A stopped host is silent for the time-out.
  CHECK(first.losses[0].known >= cluster.heartbeat_timeout - 1s);
  CHECK(first.losses[0].known <= cluster.heartbeat_timeout + 1s);
  auto slower = cluster;
  for (auto& group : slower.groups) group.link.latency *= 10;
  const auto slow = run_cluster(slower);
  CHECK(slow.start.connected > first.start.connected);
  CHECK(slow.sums[0].again > first.sums[0].again);
}

TEST_CASE("ten thousand process sets of 64 ranks leave the store as it was") {
  const auto cluster = cluster_of("hosts:\n  - {count: 8, ranks: 8}\n");
  ClusterRun run(cluster);
  run.start();
  const auto keys = run.store().table().keys();
  const auto bytes = run.store().table().bytes();
  const auto most = run.store().counters().most_keys;
  for (std::uint64_t number = 2; number <= 10'000; ++number) run.connect_set(number);
  CHECK(run.store().table().keys() == keys);
  CHECK(run.store().table().bytes() == bytes);
  CHECK(run.store().counters().most_keys == most);
}
