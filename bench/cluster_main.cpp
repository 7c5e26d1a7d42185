// SPDX-License-Identifier: Apache-2.0
// Runs a job on each described cluster, from the launcher's first login (apps/common/
// cluster_launch.hpp) to the first loss (runtime/simulator/cluster/cluster_run.hpp), and prints one
// row of JSON per file.
//
//   bench_cluster [--launch|--elastic] FILE...
//     --launch   the launcher's part only, of more hosts
//     --elastic  an elastic job loses a host and goes on (launch_simulator/elastic_loss.hpp)
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/common/cluster_file.hpp"
#include "apps/common/launch_simulator/cluster_launch.hpp"
#include "apps/common/launch_simulator/elastic_loss.hpp"
#include "runtime/simulator/cluster/cluster_run.hpp"

namespace {

using namespace horo::runtime::sim;  // NOLINT(google-build-using-namespace): a program of its own

enum class Part : std::uint8_t { all, launch, elastic };

std::string simulate(const Cluster& cluster, Part part) {
  if (part == Part::elastic)
    return horo::apps::to_json(cluster, horo::apps::simulate_elastic_loss(cluster));
  auto report = part == Part::launch ? ClusterReport{} : run_cluster(cluster);
  report.launch = horo::apps::simulate_launch(cluster);
  return to_json(cluster, report);
}

bool loses_a_host(const Cluster& cluster) {
  return !cluster.failures.empty() && cluster.failures.front().host > 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> files(argv + 1, argv + argc);
  Part part = Part::all;
  if (!files.empty() && files.front() == "--launch") part = Part::launch;
  if (!files.empty() && files.front() == "--elastic") part = Part::elastic;
  if (part != Part::all) files.erase(files.begin());
  if (files.empty()) {
    std::fputs("usage: bench_cluster [--launch|--elastic] FILE...\n", stderr);
    return 2;
  }
  for (const auto& file : files) {
    const auto cluster = horo::apps::read_cluster(file);
    if (!cluster) {
      fmt::print(stderr, "bench_cluster: {}\n", cluster.error().message);
      return 2;
    }
    if (part == Part::elastic && !loses_a_host(*cluster)) {
      fmt::print(stderr, "bench_cluster: {}: failures[0] must be of host 1 or later\n", file);
      return 2;
    }
    fmt::print("{}\n", simulate(*cluster, part));
    std::fflush(stdout);
  }
  return 0;
}
