// SPDX-License-Identifier: Apache-2.0
// Horo through its C ABI; the program is one rank. Each tensor is submitted by a separate call, as
// gradients appear in a training.
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include <horo/horo.h>

#include "bench/harness.hpp"

namespace horo::bench {
namespace {

Status check(horo_status status, const char* call) {
  if (status == HORO_OK) return {};
  return fail(static_cast<Errc>(status), "{}: {}: {}", call, horo_status_name(status),
              horo_last_error());
}

enum class Memory { own, shared };

class HoroContender final : public Contender {
 public:
  explicit HoroContender(Memory memory) : memory_(memory) {}

  HoroContender(const HoroContender&) = delete;
  HoroContender& operator=(const HoroContender&) = delete;

  ~HoroContender() override { release(); }

  int rank() const override { return horo_rank(); }

  int ranks() const override { return horo_size(); }

  Status prepare(const Workload& workload) override {
    release();
    for (const std::size_t count : workload.counts) {
      HORO_TRY(float* values, allocate(count * sizeof(float)));
      tensors_.emplace_back(values, count);
      const std::string name = fmt::format("{}.{}.{}", workload.name, count, tensors_.size());
      const auto extent = static_cast<std::int64_t>(count);
      horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
      desc.name = name.c_str();
      desc.ndim = 1;
      desc.shape = &extent;
      HORO_TRY_STATUS(check(horo_declare(&desc, &handles_.emplace_back()), "horo_declare"));
    }
    operations_.assign(handles_.size(), 0);
    return {};
  }

  std::span<float> tensor(std::size_t index) override { return tensors_[index]; }

  Status step() override {
    for (std::size_t i = 0; i < handles_.size(); ++i) {
      float* values = tensors_[i].data();
      HORO_TRY_STATUS(
          check(horo_submit(handles_[i], values, values, &operations_[i]), "horo_submit"));
    }
    if (handles_.size() == 1) return check(horo_wait(operations_.front(), -1), "horo_wait");
    return check(horo_wait_all(operations_.data(), operations_.size(), -1), "horo_wait_all");
  }

  std::optional<std::uint64_t> entries() const override {
    horo_counters counters{};
    counters.size = sizeof counters;
    if (horo_get_counters(&counters) != HORO_OK) return std::nullopt;
    return counters.entries;
  }

 private:
  Result<float*> allocate(std::size_t bytes) const {
    void* memory = nullptr;
    if (memory_ == Memory::shared) {
      HORO_TRY_STATUS(check(horo_alloc(bytes, &memory), "horo_alloc"));
    } else if (posix_memalign(&memory, 64, bytes) != 0) {
      return fail(Errc::out_of_memory, "no memory for {} bytes", bytes);
    }
    return static_cast<float*>(memory);
  }

  void release() {
    for (const auto& tensor : tensors_) {
      if (memory_ == Memory::shared) {
        horo_free(tensor.data());
      } else {
        std::free(tensor.data());
      }
    }
    tensors_.clear();
    handles_.clear();
  }

  const Memory memory_;
  std::vector<std::span<float>> tensors_;
  std::vector<horo_tensor> handles_;
  std::vector<horo_op> operations_;
};

Status run_session(const Options& options) {
  HORO_TRY_STATUS(check(horo_init(), "horo_init"));
  {
    HoroContender contender(options.memory == "shared" ? Memory::shared : Memory::own);
    HORO_TRY_STATUS(run_cases(contender, options));
  }
  return check(horo_shutdown(), "horo_shutdown");
}

/// Turns the measured part on or off for the next session.
void turn_on(const Options& options, bool on) {
  if (options.trace.empty()) {
    setenv("HORO_TIMELINE_RECORDER", on ? "1" : "0", 1);
  } else if (on) {
    setenv("HORO_TIMELINE_FILENAME", options.trace.c_str(), 1);
    setenv("HORO_TIMELINE_ALL_RANKS", "1", 1);
  } else {
    unsetenv("HORO_TIMELINE_FILENAME");
  }
}

Status run(int argc, char** argv) {
  HORO_TRY(const Options options, parse_options(argc, argv));
  if (options.turns == 0) return run_session(options);
  for (int turn = 0; turn < options.turns; ++turn) {
    turn_on(options, with_it(turn));
    HORO_TRY_STATUS(run_session(options));
  }
  return {};
}

}  // namespace
}  // namespace horo::bench

int main(int argc, char** argv) {
  return horo::bench::exit_code_of(horo::bench::run(argc, argv), "bench_horo");
}
