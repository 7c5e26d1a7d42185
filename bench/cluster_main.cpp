// SPDX-License-Identifier: Apache-2.0
// Runs a job on each described cluster, from the launcher's first login (apps/common/
// cluster_launch.hpp) to the first loss (runtime/simulator/cluster/cluster_run.hpp), and prints one
// row of JSON per file.
//
//   bench_cluster [--launch] FILE...     --launch: the launcher's part only, of more hosts
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/common/cluster_file.hpp"
#include "apps/common/launch_simulator/cluster_launch.hpp"
#include "runtime/simulator/cluster/cluster_run.hpp"

namespace {

using namespace horo::runtime::sim;  // NOLINT(google-build-using-namespace): a program of its own

ClusterReport simulate(const Cluster& cluster, bool launch_only) {
  auto report = launch_only ? ClusterReport{} : run_cluster(cluster);
  report.launch = horo::apps::simulate_launch(cluster);
  return report;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool launch_only = !words.empty() && words.front() == "--launch";
  if (words.size() <= (launch_only ? 1U : 0U)) {
    std::fputs("usage: bench_cluster [--launch] FILE...\n", stderr);
    return 2;
  }
  for (std::size_t i = launch_only ? 1 : 0; i < words.size(); ++i) {
    const auto cluster = horo::apps::read_cluster(words[i]);
    if (!cluster) {
      fmt::print(stderr, "bench_cluster: {}\n", cluster.error().message);
      return 2;
    }
    fmt::print("{}\n", to_json(*cluster, simulate(*cluster, launch_only)));
    std::fflush(stdout);
  }
  return 0;
}
