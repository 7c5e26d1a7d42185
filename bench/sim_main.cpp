// SPDX-License-Identifier: Apache-2.0
// Simulates jobs of growing size and measures the time, the traffic and the memory of agreement.
// Prints one JSON row per job.
//
//   bench_sim RANKS_PER_HOST HOSTS... [--tensors N] [--link-us N] [--radix N]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/simulator/agreement_step.hpp"

namespace {

using namespace horo;                // NOLINT(google-build-using-namespace): a program of its own
using namespace horo::runtime::sim;  // NOLINT(google-build-using-namespace): a program of its own

struct Job {
  int ranks_per_host = 8;
  int hosts = 1;
  int tensors = 161;
  int radix = 16;
  int link_us = 50;
};

std::size_t heap() {
  return mallinfo2().uordblks;
}

void run_job(const Job& job) {
  WorldParams params{.hosts = even_hosts(job.hosts, job.ranks_per_host), .radix = job.radix};
  params.links.latency = std::chrono::microseconds(job.link_us);
  const auto empty = heap();
  World world(params);
  const auto first = run_agreement(world, job.tensors);
  const auto second = run_agreement(world, job.tensors);
  std::size_t boards = 0;
  for (int h = 0; h < world.hosts(); ++h) boards += world.log(h).bytes();
  // The rest, besides boards and leaders, is the list of hosts, which all simulated leaders share.
  const auto hosts = static_cast<std::size_t>(job.hosts);
  const auto leaders = heap() - empty - boards;
  const auto us = [](Duration d) { return static_cast<double>(d.count()) / 1e3; };
  fmt::print(
      "{{\"ranks\": {}, \"hosts\": {}, \"tensors\": {}, \"radix\": {}, \"depth\": {}, \"link_us\": "
      "{}, "
      "\"first_us\": {:.1f}, \"cached_us\": {:.1f}, \"first_frames\": {}, \"first_bytes\": {}, "
      "\"cached_frames\": {}, \"cached_bytes\": {}, \"leader_bytes\": {}, \"rank_bytes\": {}}}\n",
      world.size(), job.hosts, job.tensors, job.radix, depth_of(job.hosts, job.radix), job.link_us,
      us(first.latency), us(second.latency), first.most_frames, first.most_bytes,
      second.most_frames, second.most_bytes, leaders / hosts,
      (leaders + boards) / static_cast<std::size_t>(world.size()));
}

}  // namespace

int main(int argc, char** argv) {
  Job job;
  std::vector<int> hosts;
  std::vector<int> numbers;
  for (int i = 1; i < argc; ++i) {
    int* option = std::strcmp(argv[i], "--tensors") == 0   ? &job.tensors
                  : std::strcmp(argv[i], "--link-us") == 0 ? &job.link_us
                  : std::strcmp(argv[i], "--radix") == 0   ? &job.radix
                                                           : nullptr;
    if (option != nullptr) {
      if (++i == argc) return 2;
      *option = std::atoi(argv[i]);
    } else {
      numbers.push_back(std::atoi(argv[i]));
    }
  }
  if (numbers.size() < 2 || *std::min_element(numbers.begin(), numbers.end()) < 1) {
    std::fputs("usage: bench_sim RANKS_PER_HOST HOSTS... [--tensors N] [--link-us N] [--radix N]\n",
               stderr);
    return 2;
  }
  job.ranks_per_host = numbers[0];
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    job.hosts = numbers[i];
    run_job(job);
  }
  return 0;
}
