// SPDX-License-Identifier: Apache-2.0
// Fits a line to points, data-parallel, while ranks come and go:
//
//   horo run --min-np 2 --max-np 4 -H localhost:4 build/release/examples/elastic_line
//
// Kill a rank while it runs: the others go on with the next step, in the same processes. The state
// of the training is two numbers and the number of steps done. Three points, marked (1), (2) and
// (3) below, make it elastic.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <thread>

#include <horo/horo.hpp>

namespace {

constexpr std::int64_t kPoints = 10'000;
constexpr double kLearningRate = 0.5;

struct State {
  std::array<double, 2> line{};  // slope and intercept
  std::int64_t steps = 0;
};

// The gradient of the mean squared error over this rank's points, as a share of all points.
std::array<double, 2> gradient(const State& state, int rank, int size) {
  std::array<double, 2> sum{};
  for (std::int64_t i = rank; i < kPoints; i += size) {
    const double x = static_cast<double>(i) / kPoints;
    const double error = state.line[0] * x + state.line[1] - (3.0 * x - 1.0);
    sum[0] += 2.0 * error * x / kPoints;
    sum[1] += 2.0 * error / kPoints;
  }
  return sum;
}

// (2) When a rank is lost, some ranks may have done the last step and others not: all take the
// state of the lowest rank that is furthest. New ranks have done no step, so nobody takes theirs.
void share(const horo::Job& job, State& state) {
  const auto steps =
      job.allgather<std::int64_t>("steps", std::span<const std::int64_t>(&state.steps, 1)).data;
  const auto furthest = std::max_element(steps.begin(), steps.end());
  const auto root = static_cast<int>(furthest - steps.begin());
  job.broadcast("line", std::span<double>(state.line), root);
  state.steps = *furthest;
}

horo::Training train(const horo::Job& job, State& state, std::int64_t steps) {
  share(job, state);
  if (job.rank() == 0) {
    std::printf("generation %lld: %d ranks, %d of them from the one before; step %lld\n",
                static_cast<long long>(horo_generation()), job.size(), horo_survivors(),
                static_cast<long long>(state.steps));
    std::fflush(stdout);
  }
  while (state.steps < steps) {
    auto sum = gradient(state, job.rank(), job.size());
    // A rank that is lost makes this throw, and the state is still that before the step.
    job.allreduce("gradient", std::span<double>(sum), {.op = horo::ReduceOp::sum});
    for (std::size_t i = 0; i < sum.size(); ++i) state.line[i] -= kLearningRate * sum[i];
    ++state.steps;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // a step of a real training
    // (3) Hosts may have come or be about to go: all ranks leave together, and lose nothing.
    if (state.steps % 10 == 0 && horo::agreed_change(job)) return horo::Training::next_generation;
  }
  if (job.rank() == 0)
    std::printf("y = %.3f x + %.3f after %lld steps\n", state.line[0], state.line[1],
                static_cast<long long>(state.steps));
  return horo::Training::finished;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::int64_t steps = argc > 1 ? std::atoll(argv[1]) : 1000;
    State state;  // (1) The state lives outside of the loop over generations.
    horo::elastic_loop([&](const horo::Job& job) { return train(job, state, steps); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "elastic_line: %s\n", error.what());
    return 1;
  }
}
