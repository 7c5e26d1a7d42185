// SPDX-License-Identifier: Apache-2.0
#include "tests/device_path/two_devices.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "tests/device_path/drawn_ops.hpp"

namespace horo::tests {

namespace {

constexpr std::int64_t kCount = 1000;

using Pair = std::array<const Gpu*, 2>;

void require_no_findings(const Gpu& gpu, const std::string& when) {
  const auto found = gpu.findings();
  require(found.empty(), when + ": " + found);
}

void run_seed(const Pair& gpus, const DrawnSet& set, std::uint64_t seed) {
  gpus[0]->plan(
      "devices=2 seed=" + std::to_string(seed * 64 + static_cast<std::uint64_t>(horo_rank())) +
      " delay=" + std::to_string(seed % 3 * 20));
  std::mt19937_64 random(seed);
  const auto ops = draw(random, 10, {set});
  // From here on each rank draws for itself.
  std::mt19937_64 own(seed * 1000 + static_cast<std::uint64_t>(horo_rank()));
  const std::array<void*, 2> streams = {gpus[0]->stream(), gpus[1]->stream()};
  std::vector<std::unique_ptr<RunningOp>> running;
  for (std::size_t k = 0; k < ops.size(); ++k) {
    const auto at = own() % 2;
    running.push_back(std::make_unique<RunningOp>(*gpus[at], ops[k], set, streams[at],
                                                  "op." + std::to_string(k)));
  }
  for (auto& op : running) op->finish(own() % 2 == 0);
  for (std::size_t k = 0; k < gpus.size(); ++k) gpus[k]->destroy(streams[k]);
  require_no_findings(*gpus[0], "seed " + std::to_string(seed));
}

/// One of two tensors of a group, which is one bucket.
class Half {
 public:
  Half(const Gpu& gpu, const std::string& group)
      : gpu_(gpu), stream_(gpu.stream()), memory_(gpu.allocate(kCount * sizeof(float))) {
    std::vector<float> numbers(kCount, static_cast<float>(gpu.device() + 1));
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(numbers.data());
    gpu_.put(memory_, {bytes, bytes + numbers.size() * sizeof(float)}, stream_);
    submit(group, group + "." + std::to_string(gpu.device()));
  }

  /// The stream waits for the sum and reads it.
  void check_sum() {
    require(horo_wait_stream(&op_, 1, stream_, -1) == HORO_OK, horo_last_error());
    const auto got = gpu_.fetch(memory_, kCount * sizeof(float), stream_);
    gpu_.synchronize(stream_);
    const auto* const numbers = reinterpret_cast<const float*>(got.data());
    const auto sum = static_cast<float>((gpu_.device() + 1) * horo_size());
    for (std::int64_t k = 0; k < kCount; ++k) require(numbers[k] == sum, "another sum");
    require(end() == HORO_OK, horo_last_error());
  }

  horo_status end() {
    const auto status = horo_await(op_, -1);
    message_ = status == HORO_OK ? "" : horo_last_error();
    static_cast<void>(horo_release(op_));
    gpu_.free(memory_);
    gpu_.destroy(stream_);
    return status;
  }

  /// The text of the error with which it has ended.
  const std::string& message() const { return message_; }

 private:
  void submit(const std::string& group, const std::string& name) {
    horo_tensor_desc like = HORO_TENSOR_DESC_INIT;
    like.name = name.c_str();
    like.ndim = 1;
    like.shape = &kCount;
    like.group = group.c_str();
    like.group_size = 2;
    const auto given = declared(gpu_, like, memory_, stream_);
    require(horo_submit_with(&given, &op_) == HORO_OK, horo_last_error());
  }

  const Gpu& gpu_;
  void* const stream_;
  void* const memory_;
  horo_op op_ = 0;
  std::string message_;
};

/// Both halves are one bucket, whose devices have pauses of their own.
void run_pairs(const Pair& gpus) {
  for (int k = 0; k < 20; ++k) {
    gpus[0]->plan("devices=2 seed=" + std::to_string(k) + " delay=" + std::to_string(k % 4 * 100));
    Half second(*gpus[1], "pair");
    Half first(*gpus[0], "pair");
    second.check_sum();
    first.check_sum();
    require_no_findings(*gpus[0], "pair " + std::to_string(k));
  }
}

/// On rank 0 the copy to the host of the one or the other half fails, which ends both halves.
void fail_pairs(const Pair& gpus) {
  for (const int call : {2, 3}) {
    Half first(*gpus[0], "broken");
    // The first call is the program's own.
    if (horo_rank() == 0)
      gpus[0]->plan("devices=2 fail=cuMemcpyAsync@" + std::to_string(call) + ":719");
    Half second(*gpus[1], "broken");
    for (auto* const half : {&first, &second}) {
      require(half->end() == HORO_IO, "the operation has not failed");
      const auto* const expected = horo_rank() == 0 ? " of host " : "rank 0 could not copy";
      require(half->message().find(expected) != std::string::npos, half->message());
    }
    if (horo_rank() == 0) gpus[0]->plan("devices=2");
  }
}

/// An error names the device that it is of, which is not the one that the set used first.
void fail_on_second(const Pair& gpus, const DrawnSet& set) {
  if (horo_rank() == 0) gpus[0]->plan("devices=2 fail=cuMemcpyAsync@2:719");
  RunningOp broken(*gpus[1], {.number = 1, .rows = 10}, set, gpus[1]->stream(), "alone");
  require(broken.end() == HORO_IO, "the operation has not failed");
  const std::string message = horo_last_error();
  const auto* const expected = horo_rank() == 0 ? "device 1 of host " : "rank 0 could not copy";
  require(message.find(expected) != std::string::npos, message);
  if (horo_rank() == 0) gpus[0]->plan("devices=2");
  broken.release();
}

}  // namespace

int two_devices(const Gpu& gpu, char** arguments) {
  const Gpu other(std::getenv("HORO_GPU_DRIVER"), 1);
  const Pair gpus = {&gpu, &other};
  const auto first = std::strtoull(arguments[0], nullptr, 10);
  const auto count = std::strtoull(arguments[1], nullptr, 10);
  const auto set = world();
  for (auto seed = first; seed < first + count; ++seed) run_seed(gpus, set, seed);
  run_pairs(gpus);
  fail_pairs(gpus);
  fail_on_second(gpus, set);
  run_pairs(gpus);
  return 0;
}

int second_device(const Gpu& gpu, char** /*arguments*/) {
  const Gpu other(std::getenv("HORO_GPU_DRIVER"), 1);
  const auto set = world();
  RunningOp(gpu, {.number = 1, .rows = 10}, set, gpu.stream(), "first").finish(false);
  auto* const memory = other.allocate(sizeof(float));
  const std::int64_t one = 1;
  horo_tensor_desc like = HORO_TENSOR_DESC_INIT;
  like.name = "second";
  like.ndim = 1;
  like.shape = &one;
  const auto given = declared(other, like, memory, nullptr);
  horo_op op = 0;
  require(horo_submit_with(&given, &op) == HORO_UNSUPPORTED, "it is not refused");
  const std::string message = horo_last_error();
  require(message.find("a tensor on device 1, but this rank's tensors in process set 0 are on "
                       "device 0") != std::string::npos &&
              message.find("gpu.operations: staged") != std::string::npos,
          message);
  other.free(memory);
  // The set goes on.
  RunningOp(gpu, {.number = 2, .rows = 10}, set, gpu.stream(), "after").finish(false);
  return 0;
}

}  // namespace horo::tests
