// SPDX-License-Identifier: Apache-2.0
// Predicts the time of a training's step on a described cluster
// (runtime/simulator/cluster/predict.hpp) for each fusion threshold and cycle time: lines
// "threshold,cycle_us,seconds,entries".
//
//   bench_predict FILE THRESHOLD,... CYCLE_US,... [SMALL_MESSAGE]
#include <cstdio>

#include <fmt/format.h>

#include "apps/common/cluster_file.hpp"
#include "bench/parse_numbers.hpp"
#include "runtime/simulator/cluster/predict.hpp"

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fputs("usage: bench_predict FILE THRESHOLD,... CYCLE_US,... [SMALL_MESSAGE]\n", stderr);
    return 2;
  }
  const auto cluster = horo::apps::read_cluster(argv[1]);
  if (!cluster) {
    fmt::print(stderr, "bench_predict: {}\n", cluster.error().message);
    return 2;
  }
  if (cluster->hosts() < 2 || cluster->training.tensors.empty()) {
    fmt::print(stderr, "bench_predict: {} needs two hosts and a training\n", argv[1]);
    return 2;
  }
  const auto small =
      argc == 5 ? horo::bench::parse_numbers(argv[4]).front() : horo::runtime::kUsualSmallMessage;
  horo::runtime::sim::StepPredictor predictor(*cluster);
  for (const auto threshold : horo::bench::parse_numbers(argv[2])) {
    for (const auto cycle : horo::bench::parse_numbers(argv[3])) {
      const auto found = predictor.predict({.fusion_threshold = threshold,
                                            .cycle = std::chrono::microseconds(cycle),
                                            .small_message = small});
      const std::chrono::duration<double> seconds = found.step;
      fmt::print("{},{},{:.6g},{}\n", threshold, cycle, seconds.count(), found.entries);
    }
  }
  return 0;
}
