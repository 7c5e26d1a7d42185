// SPDX-License-Identifier: Apache-2.0
#include "tests/device_path/timed_ops.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/device_path/drawn_ops.hpp"

namespace horo::tests {

namespace {

/// The part of all plans: how many devices there are, and that their clocks drift.
std::string plan_with(const std::string& words) {
  const auto devices = std::getenv("GPU_RANK_DEVICES") == nullptr
                           ? std::string()
                           : "devices=" + std::to_string(horo_local_size()) + " ";
  return devices + "drift=50 " + words;
}

horo_op submit(const Gpu& gpu, const char* name, void* memory, std::int64_t count, void* stream) {
  horo_tensor_desc like = HORO_TENSOR_DESC_INIT;
  like.name = name;
  like.ndim = 1;
  like.shape = &count;
  like.group = "slow";
  like.group_size = 2;
  const auto given = declared(gpu, like, memory, stream);
  horo_op op = 0;
  require(horo_submit_with(&given, &op) == HORO_OK, horo_last_error());
  return op;
}

/// Two small tensors of one group, which are one bucket.
void run_slow(const Gpu& gpu, void* stream) {
  constexpr std::int64_t kCount = 1000;
  const std::array<const char*, 2> names = {"slow", "slow.too"};
  std::array<void*, 2> memory{};
  std::array<horo_op, 2> ops{};
  for (std::size_t k = 0; k < names.size(); ++k) {
    memory[k] = gpu.allocate(kCount * sizeof(float));
    gpu.put(memory[k], std::vector<std::uint8_t>(kCount * sizeof(float)), stream);
    ops[k] = submit(gpu, names[k], memory[k], kCount, stream);
  }
  for (std::size_t k = 0; k < names.size(); ++k) {
    require(horo_wait(ops[k], -1) == HORO_OK, horo_last_error());
    gpu.free(memory[k]);
  }
}

long long wall_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace

int times(const Gpu& gpu, char** arguments) {
  const auto set = world();
  auto* const stream = gpu.stream();
  const DrawnOp op{.number = 1, .rows = 1000};
  gpu.plan(plan_with(""));
  RunningOp(gpu, op, set, stream, "before").finish(false);
  gpu.plan(plan_with(arguments[0]));
  run_slow(gpu, stream);
  gpu.plan(plan_with(""));
  std::atomic<bool> open{false};
  gpu.gate(stream, open);
  RunningOp late(gpu, op, set, stream, "late");
  if (std::string(arguments[1]) == "launched") late.await_launch(gpu.stream());
  if (horo_rank() == 0) std::printf("ready at %lld us\n", wall_us());
  open = true;
  open.notify_all();
  late.finish(false);
  const auto found = gpu.findings();
  require(found.empty(), found);
  return 0;
}

int untimed(const Gpu& gpu, char** /*arguments*/) {
  RunningOp(gpu, {.number = 1, .rows = 1000}, world(), gpu.stream(), "untimed").finish(false);
  require(gpu.calls("cuEventRecord") != 0, "no event is counted");
  require(gpu.calls("cuEventElapsedTime") == 0, "times are measured without a trace");
  return 0;
}

}  // namespace horo::tests
