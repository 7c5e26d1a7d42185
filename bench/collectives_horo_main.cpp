// SPDX-License-Identifier: Apache-2.0
// Horo's collectives through its C ABI; the program is one rank.
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include <horo/horo.h>

#include "bench/collectives.hpp"

namespace horo::bench {
namespace {

Status check(horo_status status, const char* call) {
  if (status == HORO_OK) return {};
  return fail(static_cast<Errc>(status), "{}: {}: {}", call, horo_status_name(status),
              horo_last_error());
}

horo_kind kind_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::allgather:
      return HORO_ALLGATHER;
    case CollectiveKind::alltoall:
      return HORO_ALLTOALL;
    case CollectiveKind::reducescatter:
      return HORO_REDUCESCATTER;
    case CollectiveKind::broadcast:
      return HORO_BROADCAST;
    case CollectiveKind::allreduce:
    case CollectiveKind::adasum:
      break;
  }
  return HORO_ALLREDUCE;
}

class HoroCollectives final : public CollectiveContender {
 public:
  explicit HoroCollectives(bool shared) : shared_(shared) {}

  HoroCollectives(const HoroCollectives&) = delete;
  HoroCollectives& operator=(const HoroCollectives&) = delete;

  ~HoroCollectives() override { release(); }

  int rank() const override { return horo_rank(); }

  int ranks() const override { return horo_size(); }

  Status prepare(const Collective& c) override {
    release();
    kind_ = kind_of(c.kind);
    in_place_ = kind_ == HORO_ALLREDUCE || kind_ == HORO_BROADCAST;
    HORO_TRY(const auto input, allocate(c.input(ranks())));
    input_ = {input, c.input(ranks())};
    if (in_place_) {
      output_ = input_;
    } else {
      HORO_TRY(const auto output, allocate(c.output(ranks())));
      output_ = {output, c.output(ranks())};
    }
    const std::string name = fmt::format("{}.{}", c.name, c.elements);
    const auto extent = static_cast<std::int64_t>(input_.size());
    horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
    desc.name = name.c_str();
    desc.kind = kind_;
    desc.op = c.kind == CollectiveKind::adasum ? HORO_ADASUM : HORO_SUM;
    desc.ndim = 1;
    desc.shape = &extent;
    return check(horo_declare(&desc, &tensor_), "horo_declare");
  }

  std::span<float> input() override { return input_; }

  std::span<const float> output() override { return output_; }

  Status step() override {
    horo_submission submission = HORO_SUBMISSION_INIT;
    submission.tensor = tensor_;
    submission.in = input_.data();
    submission.out = output_.data();
    const bool keeps = kind_ == HORO_ALLGATHER || kind_ == HORO_ALLTOALL;
    if (keeps) submission.out_bytes = output_.size_bytes();
    horo_op op = 0;
    HORO_TRY_STATUS(check(horo_submit_with(&submission, &op), "horo_submit_with"));
    HORO_TRY_STATUS(check(horo_wait(op, -1), "horo_wait"));
    return keeps ? check(horo_release(op), "horo_release") : Status{};
  }

  Result<double> agree(double number) override {
    horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
    desc.name = "agree";
    desc.kind = HORO_BROADCAST;
    desc.dtype = HORO_FLOAT64;
    horo_tensor tensor = 0;
    horo_op op = 0;
    HORO_TRY_STATUS(check(horo_declare(&desc, &tensor), "horo_declare"));
    HORO_TRY_STATUS(check(horo_submit(tensor, &number, &number, &op), "horo_submit"));
    HORO_TRY_STATUS(check(horo_wait(op, -1), "horo_wait"));
    return number;
  }

 private:
  Result<float*> allocate(std::size_t count) const {
    void* memory = nullptr;
    if (shared_) {
      HORO_TRY_STATUS(check(horo_alloc(count * sizeof(float), &memory), "horo_alloc"));
    } else if (posix_memalign(&memory, 64, count * sizeof(float)) != 0) {
      return fail(Errc::out_of_memory, "no memory for {} elements", count);
    }
    return static_cast<float*>(memory);
  }

  void release() {
    const auto free_one = [this](void* memory) {
      if (shared_) {
        horo_free(memory);
      } else {
        std::free(memory);
      }
    };
    free_one(input_.data());
    if (!in_place_) free_one(output_.data());
    input_ = output_ = {};
  }

  const bool shared_;
  bool in_place_ = false;
  horo_kind kind_ = HORO_ALLREDUCE;
  horo_tensor tensor_ = 0;
  std::span<float> input_;
  std::span<float> output_;
};

Status run(int argc, char** argv) {
  HORO_TRY(const Options options, parse_options(argc, argv));
  HORO_TRY_STATUS(check(horo_init(), "horo_init"));
  {
    HoroCollectives contender(options.memory == "shared");
    HORO_TRY_STATUS(run_collectives(contender, options));
  }
  return check(horo_shutdown(), "horo_shutdown");
}

}  // namespace
}  // namespace horo::bench

int main(int argc, char** argv) {
  return horo::bench::exit_code_of(horo::bench::run(argc, argv), "bench_collectives_horo");
}
