// SPDX-License-Identifier: Apache-2.0
// Elastic jobs on described clusters that lose a host: frames, bytes, and the order in which hosts
// know of it.
#include "apps/common/launch_simulator/elastic_loss.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "apps/common/cluster_file.hpp"

using namespace horo;
using namespace horo::runtime::sim;
using namespace std::chrono_literals;

namespace {

apps::ElasticLossReport loss_of(const std::string& text) {
  const auto cluster = apps::parse_cluster(text, "c.yaml");
  if (!cluster) FAIL(cluster.error().message);
  return apps::simulate_elastic_loss(*cluster);
}

/// The leader of the launcher's host exchanges about so many frames with its neighbours after a
/// loss.
constexpr std::uint64_t kOfTree = 200;

apps::ElasticLossReport loss_among(int hosts) {
  return loss_of(fmt::format(
      "hosts: [{{count: {}, ranks: 1}}]\nlinks: {{latency_us: 50}}\nfailures: [{{host: {}}}]\n",
      hosts, hosts / 2));
}

}  // namespace

TEST_CASE("survivors of a simulated elastic job meet after they know, and after their answers") {
  const auto report =
      loss_of("hosts: [{count: 4, ranks: 3}]\nlinks: {latency_us: 50}\nfailures: [{host: 3}]\n");
  CHECK(report.failure.host == 3);
  CHECK(report.first_knows <= report.last_knows);
  CHECK(report.last_knows < report.last_answered);
  CHECK(report.last_answered < report.last_connected);
}

TEST_CASE(
    "a host that is cut off is missed after the heartbeat timeout, and agreed on soon after") {
  const auto report = loss_of(
      "hosts: [{count: 4, ranks: 1}]\nlinks: {latency_us: 50}\nheartbeat_timeout_s: 2\n"
      "failures: [{host: 2, how: is_cut}]\n");
  CHECK(report.first_knows >= 1s);
  CHECK(report.last_knows <= 5s);
  CHECK(report.last_connected - report.last_knows < 50ms);
}

TEST_CASE("the frames of a host after a loss grow no more than logarithmically with the hosts") {
  const auto ten = loss_among(10);
  const auto hundred = loss_among(100);
  const auto thousand = loss_among(1000);
  // Ten times the hosts add as many frames as the last time, or a few for one more round.
  constexpr std::uint64_t kRound = 12;
  const auto check = [&](auto field) {
    const auto frames = [field](const apps::ElasticLossReport& report) {
      return (report.*field).frames;
    };
    const auto step = frames(hundred) - std::min(frames(hundred), frames(ten));
    CHECK(frames(thousand) <= frames(hundred) + step + kRound);
  };
  check(&apps::ElasticLossReport::median_of_host);
  check(&apps::ElasticLossReport::most_of_host);
  CHECK(thousand.median_of_host.frames < 100);
}

TEST_CASE(
    "the launcher's host exchanges so many frames for each host, and no more with more hosts") {
  const auto per_host = [](const apps::ElasticLossReport& report, std::uint64_t hosts) {
    return report.of_launcher.frames / hosts;
  };
  const auto hundred = per_host(loss_among(100), 100);
  CHECK(per_host(loss_among(1000), 1000) <= hundred + 1);
}

TEST_CASE("ranks that share a host call in one message, and 8,000 ranks agree within 50 ms") {
  const auto of_eight = [](int hosts, const char* how) {
    return loss_of(fmt::format(
        "hosts: [{{count: {}, ranks: 8}}]\nlinks: {{latency_us: 50}}\nfailures: [{{host: {}, how: "
        "{}}}]\n",
        hosts, hosts / 2, how));
  };
  const auto hundred = of_eight(100, "dies");
  // One message with calls, one with answers, and one with the end of the generation before.
  CHECK(hundred.of_launcher_to_agree.frames <= 3 * 100 + kOfTree);
  CHECK(hundred.of_launcher_to_agree.frames == loss_among(100).of_launcher_to_agree.frames);
  for (const char* how : {"dies", "is_cut"}) {
    const auto thousand = of_eight(1000, how);
    CHECK(thousand.last_answered - thousand.last_knows <= 50ms);
    CHECK(thousand.of_launcher_to_agree.frames <= 3 * 1000 + kOfTree);
  }
}
