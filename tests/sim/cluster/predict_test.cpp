// SPDX-License-Identifier: Apache-2.0
// Predicted steps of trainings on described clusters, where the answer is known in advance.
#include "runtime/simulator/cluster/predict.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "apps/common/cluster_file.hpp"

using namespace horo;
using namespace horo::runtime::sim;
using namespace std::chrono_literals;

namespace {

/// Two hosts at 1 Gbit/s; `tensors` of `bytes` each appear at once.
Cluster cluster_of(std::size_t tensors, std::uint64_t bytes, Duration latency = 50us) {
  Cluster cluster;
  cluster.groups = {
      {.count = 2, .ranks = 1, .link = {.latency = latency, .bytes_per_second = 125e6}}};
  cluster.training.tensors.assign(tensors, {.bytes = bytes});
  return cluster;
}

double ms(Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::string fault_of(const std::string& training) {
  const auto cluster = apps::parse_cluster("hosts: [{count: 2}]\ntraining:" + training, "c.yaml");
  REQUIRE_FALSE(cluster);
  return cluster.error().message;
}

}  // namespace

TEST_CASE("large sums take the time of their bytes on the link") {
  // Each of two hosts sends as many bytes as the tensor has.
  StepPredictor predictor(cluster_of(4, 16 << 20));
  const auto found = predictor.predict({.fusion_threshold = 0});
  CHECK(found.entries == 4);
  // With the headers of each packet.
  const double bytes_ms = 4 * (16 << 20) * (1 + 66.0 / 1448) / 125e6 * 1e3;
  CHECK(ms(found.step) > bytes_ms);
  CHECK(ms(found.step) < 1.01 * bytes_ms);
}

TEST_CASE("fusion makes fewer sums, and pays where the latency is long") {
  StepPredictor predictor(cluster_of(100, 4096, 5ms));
  const auto single = predictor.predict({.fusion_threshold = 0});
  const auto fused = predictor.predict({.fusion_threshold = 1 << 20});
  CHECK(single.entries == 100);
  CHECK(fused.entries <= 3);
  CHECK(ms(single.step) > 100 * 5);  // Two entries are in flight, and each waits for two messages.
  CHECK(ms(fused.step) < ms(single.step) / 5);
}

TEST_CASE("two sums in flight share the time of their rounds, but not of their bytes") {
  // Both rounds of a sum take 10 ms, and its bytes 0.5 ms on the link.
  StepPredictor one(cluster_of(1, 64 << 10, 5ms));
  StepPredictor two(cluster_of(2, 64 << 10, 5ms));
  const auto first = ms(one.predict({.fusion_threshold = 0}).step);
  const auto both = ms(two.predict({.fusion_threshold = 0}).step);
  CHECK(both > first + 0.5);
  CHECK(both < first + 1.5);
}

TEST_CASE("sums that follow each other take at least the time of all their bytes") {
  // 60 sums of 8.8 ms on the link, whose rounds take 2 ms: two in flight fill the link.
  StepPredictor predictor(cluster_of(60, 1 << 20, 1ms));
  const double bytes_ms = 60 * (1 << 20) * (1 + 66.0 / 1448) / 125e6 * 1e3;
  const auto found = ms(predictor.predict({.fusion_threshold = 0}).step);
  CHECK(found > bytes_ms);
  CHECK(found < bytes_ms + 15);
}

TEST_CASE("a link's burst carries the first bytes after a pause at once") {
  auto cluster = cluster_of(1, 1 << 20, 5ms);
  const auto step = [&cluster](double burst) {
    cluster.groups[0].link.burst_bytes = burst;
    // Everything goes one way.
    return ms(StepPredictor(cluster).predict({.small_message = 16 << 20}).step);
  };
  const auto without = step(0);
  const auto saved = 1e3 * (64 << 10) / 125e6;
  CHECK(step(64 << 10) == Approx(without - saved).margin(0.1));
  // The bytes that a burst has not carried wait for the link's rate, whatever else is in flight.
  cluster.training.tensors.assign(40, {.bytes = 1 << 20});
  const auto both = [&cluster](double burst) {
    cluster.groups[0].link.burst_bytes = burst;
    return ms(StepPredictor(cluster).predict({.fusion_threshold = 0}).step);
  };
  CHECK(both(64 << 10) < both(0));
  CHECK(both(64 << 10) > 40 * (1 << 20) / 125e6 * 1e3);
}

TEST_CASE("a host that has its results early begins the next step early") {
  // All is sent one way. The root has the result of the other host 10 ms after it began the sum,
  // and the other host has the root's 5 ms earlier. So its tensors of the next step, which it
  // declares at once, are at the root when the root begins that step.
  StepPredictor predictor(cluster_of(1, 4096, 5ms));
  CHECK(ms(predictor.predict({}).step) == Approx(10).margin(0.3));
}

TEST_CASE("a sum that is just too large for one way over the network takes two") {
  // Up to half of the small message each of two hosts sends everything at once.
  StepPredictor predictor(cluster_of(1, 4, 5ms));
  constexpr std::uint64_t kSmall = 80'000;
  const auto at = [&](std::uint64_t bytes) {
    const auto ends = predictor.sum_times(bytes, kSmall).ends;
    return ms(*std::max_element(ends.begin(), ends.end()));
  };
  // The step does not begin before or after that size, also between sizes that are simulated.
  CHECK(at(39'996) - at(36'000) < 0.1);
  CHECK(at(40'000) - at(39'996) < 0.1);
  CHECK(at(40'004) - at(40'000) > 4.5);
  CHECK(at(44'000) - at(40'004) < 0.1);
}

TEST_CASE("each entry waits for the cycle time where nothing is fused") {
  StepPredictor predictor(cluster_of(20, 4096));
  const auto found = predictor.predict({.fusion_threshold = 0, .cycle = 50ms});
  CHECK(ms(found.step) > 19 * 50);
  CHECK(ms(found.step) < 21 * 50 + 10);
}

TEST_CASE("a step takes at least as long as its computation") {
  auto cluster = cluster_of(2, 4096);
  cluster.training.compute = 300ms;
  cluster.training.tensors[1].at = 100ms;
  StepPredictor predictor(cluster);
  CHECK(predictor.predict({}).step == 300ms);
  CHECK(predictor.predict({}).step == 300ms);  // The same every time.
  cluster.training.tensors[1].at = 400ms;
  StepPredictor late(cluster);
  CHECK(ms(late.predict({}).step) > 400);
  CHECK(ms(late.predict({}).step) < 405);
}

TEST_CASE("the root's host begins a sum first and has its result first") {
  StepPredictor predictor(cluster_of(1, 64 << 10, 5ms));
  CHECK(ms(predictor.delays()[0]) == 0);
  CHECK(ms(predictor.delays()[1]) == Approx(5).margin(0.1));
  // Both rounds of the other host are there after two ways, those of the root after three.
  const auto ends = predictor.sum_times(64 << 10).ends;
  CHECK(ms(ends[0]) == Approx(10).margin(1));
  CHECK(ms(ends[1]) == Approx(15).margin(1));
}

TEST_CASE("between the simulated sizes of sums the time grows with the bytes") {
  StepPredictor predictor(cluster_of(1, 4));
  auto before = Duration{};
  for (std::uint64_t bytes = 4; bytes < 100'000'000; bytes = bytes * 5 / 4 + 3) {
    const auto times = predictor.sum_times(bytes);
    const auto whole = *std::max_element(times.ends.begin(), times.ends.end());
    // A little less where another algorithm, which sends fewer bytes, begins.
    CHECK(ms(whole) >= 0.97 * ms(before));
    CHECK(whole > times.link);
    before = whole;
  }
  CHECK(ms(before) > 500);
}

TEST_CASE("a training in a cluster file") {
  const auto cluster = apps::parse_cluster(
      "hosts: [{count: 2}]\n"
      "training:\n"
      "  compute_ms: 100\n"
      "  tensors: [4000, {bytes: 800, count: 2}, 40, {bytes: 400, at_ms: 10}]\n",
      "c.yaml");
  if (!cluster) FAIL(cluster.error().message);
  const auto& training = cluster->training;
  CHECK(training.compute == 100ms);
  CHECK(training.bytes() == 4000 + 2 * 800 + 40 + 400);
  REQUIRE(training.tensors.size() == 5);
  // Those without a time appear evenly; all are in the order of their times.
  CHECK(training.tensors[0].at == 0ms);
  CHECK(training.tensors[1].at == 10ms);
  CHECK(training.tensors[1].bytes == 400);
  CHECK(training.tensors[2].at == 20ms);
  CHECK(training.tensors[4].at == 60ms);
}

TEST_CASE("what is wrong with a training in a cluster file") {
  CHECK(fault_of(" {tensors: [4]}\n").find("training.compute_ms is missing") != std::string::npos);
  CHECK(fault_of(" {compute_ms: 1}\n").find("training.tensors is missing") != std::string::npos);
  CHECK(fault_of(" {compute_ms: -1, tensors: [4]}\n") ==
        "c.yaml:2: training.compute_ms is '-1'; it must be a number from 0 to 3600000");
  CHECK(fault_of(" {compute_ms: 1, tensors: [x]}\n").find("training.tensors[0].bytes is 'x'") !=
        std::string::npos);
  CHECK(fault_of(" {compute_ms: 1, tensors: [{bytes: 1e12}]}\n")
            .find("training.tensors[0].bytes is '1e12'; it must be a number from 4 to") !=
        std::string::npos);
  CHECK(fault_of(" {compute_ms: 1, tensors: [{at_ms: 3}]}\n")
            .find("training.tensors[0].bytes is missing") != std::string::npos);
  CHECK(fault_of(" {compute_ms: 1, tensors: [4], epochs: 3}\n")
            .find("there is no key 'training.epochs'; training has compute_ms, tensors") !=
        std::string::npos);
}
