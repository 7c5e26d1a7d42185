// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator/agreement_step.hpp"

#include <algorithm>
#include <vector>

namespace horo::runtime::sim {

namespace {

std::vector<tree::LeaderCounters> counters(World& world) {
  std::vector<tree::LeaderCounters> all;
  for (int h = 0; h < world.hosts(); ++h) all.push_back(world.leader(h).counters());
  return all;
}

void submit_all(World& world, int tensors) {
  for (int t = 0; t < tensors; ++t) {
    Signature signature;
    const std::int64_t extent = 1000 + t;
    HORO_CHECK(set_shape(signature, {&extent, 1}));
    const auto name = fmt::format("DistributedOptimizer.allreduce.layer{}.conv.weight", t);
    for (int r = 0; r < world.size(); ++r) HORO_CHECK(world.submit(Rank{r}, name, signature));
  }
}

}  // namespace

AgreementStep run_agreement(World& world, int tensors) {
  const auto before = counters(world);
  const auto begin = world.network().now();
  AgreementStep step;
  auto due = static_cast<std::uint64_t>(world.hosts()) * static_cast<std::uint64_t>(tensors);
  world.on_publish([&](int host, SetId /*set*/, std::uint64_t /*entry*/) {
    step.latency = world.network().now() - begin;
    due -= world.log(host).records().back().names.size();
    world.log(host).forget_records();
  });
  submit_all(world, tensors);
  const auto ran = [&] {
    if (due != 0) return false;
    for (int h = 0; h < world.hosts(); ++h) {
      if (world.log(h).done() != world.log(h).published()) return false;
    }
    return true;
  };
  HORO_CHECK(world.run(std::chrono::seconds(60), ran));
  world.on_publish({});
  const auto after = counters(world);
  for (std::size_t h = 0; h < after.size(); ++h) {
    const auto frames = after[h].frames_sent - before[h].frames_sent;
    step.most_frames = std::max(step.most_frames, frames);
    step.most_bytes =
        std::max(step.most_bytes, after[h].bytes_sent - before[h].bytes_sent + 20 * frames);
  }
  return step;
}

}  // namespace horo::runtime::sim
