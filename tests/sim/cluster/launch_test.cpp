// SPDX-License-Identifier: Apache-2.0
// The launcher's tree of agents on described clusters: frames, bytes, logins and times.
#include <catch2/catch.hpp>

#include "apps/common/cluster_file.hpp"
#include "apps/common/launch_simulator/cluster_launch.hpp"
#include "launcher/protocol/protocol.hpp"
#include "launcher/starters/tree/tree_plan.hpp"

using namespace horo;
using namespace horo::runtime::sim;
using namespace std::chrono_literals;

namespace {

LaunchReport launch_of(const std::string& text) {
  const auto cluster = apps::parse_cluster(text, "c.yaml");
  if (!cluster) FAIL(cluster.error().message);
  return apps::simulate_launch(*cluster);
}

}  // namespace

TEST_CASE("the simulated launcher exchanges the messages of the protocol with each host") {
  // The launcher starts the agent of host 1, which starts that of host 2.
  const auto report = launch_of("hosts: [{count: 3, ranks: 1}]\nlaunch: {fanout: 1}\n");
  CHECK(report.levels.size() == 2);
  // Hello and start to each host, prepare to both others, and the order to reach host 2.
  CHECK(report.sent.frames == 9);
  // Host 0: hello, started. The others also: cgroup, assigned, prepared. Host 1 has reached host 2.
  CHECK(report.received.frames == 13);
  CHECK(report.most_children == 1);
  // Host 1 passes on each frame of host 2: one comes in and one goes out.
  CHECK(report.relayed.frames == 4 + 6 + 2 * (3 + 5));
}

TEST_CASE("a frame to a host behind other hosts has the bytes of its envelopes") {
  std::string hello;
  REQUIRE(launcher::protocol::encode(launcher::protocol::Hello::ours(), hello));
  const auto alone = launch_of("hosts: [{count: 3, ranks: 1}]\n");
  const auto chain = launch_of("hosts: [{count: 3, ranks: 1}]\nlaunch: {fanout: 1}\n");
  std::string reached;
  REQUIRE(launcher::protocol::encode(launcher::protocol::Reached{2, "10.0.0.3"}, reached));
  // Five frames of host 2 come in an envelope of 5 bytes in front of type and payload.
  CHECK(chain.received.bytes == alone.received.bytes + 5 * 5 + reached.size());
}

TEST_CASE("the simulated tree has the plan's levels, one after the other") {
  const auto report = launch_of("hosts: [{count: 1001, ranks: 2}]\nlaunch: {fanout: 10}\n");
  CHECK(report.levels.size() ==
        static_cast<std::size_t>(launcher::plan_tree(std::vector<bool>(1000, true), 10).levels));
  CHECK(report.most_children == 10);
  CHECK(report.most_logins == 1);
  for (std::size_t level = 1; level < report.levels.size(); ++level)
    CHECK(report.levels[level] > report.levels[level - 1]);
  CHECK(report.ranks > report.levels.back());
}

TEST_CASE("the launcher has eight logins under way at a jump host") {
  const std::string hosts = "hosts: [{count: 101, ranks: 1}]\n";
  const auto direct = launch_of(hosts + "launch: {fanout: 1000, login_cost_ms: 0}\n");
  const auto jump =
      launch_of(hosts + "launch: {fanout: 1000, login_cost_ms: 0, jump_host: true}\n");
  CHECK(jump.most_logins == 8);
  CHECK(direct.most_logins == 1);
  CHECK(jump.ranks > 5 * direct.ranks);
}

TEST_CASE("what the launcher sends grows with the hosts, and a tree saves time at many of them") {
  const std::string hosts = "hosts: [{count: 1250, ranks: 8}]\n";
  const auto few = launch_of("hosts: [{count: 125, ranks: 16}]\n");
  const auto many = launch_of(hosts);
  CHECK(many.sent.bytes < 12 * few.sent.bytes);
  const auto star = launch_of(hosts + "launch: {fanout: 1024}\n");
  CHECK(many.ranks < star.ranks);
  CHECK(many.ranks < 30s);
}
