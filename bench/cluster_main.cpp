// SPDX-License-Identifier: Apache-2.0
// Runs a job on each described cluster (runtime/simulator/cluster/cluster_run.hpp) and prints one
// row of JSON per file.
//
//   bench_cluster FILE...
#include <cstdio>

#include <fmt/format.h>

#include "apps/common/cluster_file.hpp"
#include "runtime/simulator/cluster/cluster_run.hpp"

int main(int argc, char** argv) {
  using namespace horo::runtime::sim;  // NOLINT(google-build-using-namespace): a program of its own
  if (argc < 2) {
    std::fputs("usage: bench_cluster FILE...\n", stderr);
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    const auto cluster = horo::apps::read_cluster(argv[i]);
    if (!cluster) {
      fmt::print(stderr, "bench_cluster: {}\n", cluster.error().message);
      return 2;
    }
    fmt::print("{}\n", to_json(*cluster, run_cluster(*cluster)));
    std::fflush(stdout);
  }
  return 0;
}
