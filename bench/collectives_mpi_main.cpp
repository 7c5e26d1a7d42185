// SPDX-License-Identifier: Apache-2.0
// The collectives of an MPI library; the program is one rank.
#include <mpi.h>

#include "bench/collectives.hpp"

namespace horo::bench {
namespace {

Status check(int code, const char* call) {
  if (code == MPI_SUCCESS) return {};
  return fail(Errc::io, "{} failed with code {}", call, code);
}

class MpiCollectives final : public CollectiveContender {
 public:
  MpiCollectives() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }

  int rank() const override { return rank_; }

  int ranks() const override { return ranks_; }

  Status prepare(const Collective& c) override {
    if (c.kind == CollectiveKind::adasum) return fail(Errc::unsupported, "MPI has no adasum");
    kind_ = c.kind;
    input_.assign(c.input(ranks_), 0.0F);
    // A broadcast is in place on the root and on the other ranks.
    const bool in_place = kind_ == CollectiveKind::allreduce || kind_ == CollectiveKind::broadcast;
    output_.assign(in_place ? 0 : c.output(ranks_), 0.0F);
    return {};
  }

  std::span<float> input() override { return input_; }

  std::span<const float> output() override { return output_.empty() ? input_ : output_; }

  Status step() override {
    const int all = static_cast<int>(input_.size());
    const int slice = all / ranks_;
    float* const in = input_.data();
    float* const out = output_.data();
    switch (kind_) {
      case CollectiveKind::allgather:
        return check(MPI_Allgather(in, all, MPI_FLOAT, out, all, MPI_FLOAT, MPI_COMM_WORLD),
                     "MPI_Allgather");
      case CollectiveKind::alltoall:
        return check(MPI_Alltoall(in, slice, MPI_FLOAT, out, slice, MPI_FLOAT, MPI_COMM_WORLD),
                     "MPI_Alltoall");
      case CollectiveKind::reducescatter:
        return check(MPI_Reduce_scatter_block(in, out, slice, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
                     "MPI_Reduce_scatter_block");
      case CollectiveKind::broadcast:
        return check(MPI_Bcast(in, all, MPI_FLOAT, 0, MPI_COMM_WORLD), "MPI_Bcast");
      case CollectiveKind::allreduce:
      case CollectiveKind::adasum:
        break;
    }
    return check(MPI_Allreduce(MPI_IN_PLACE, in, all, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
                 "MPI_Allreduce");
  }

  Result<double> agree(double number) override {
    HORO_TRY_STATUS(check(MPI_Bcast(&number, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD), "MPI_Bcast"));
    return number;
  }

 private:
  int rank_ = 0;
  int ranks_ = 1;
  CollectiveKind kind_ = CollectiveKind::allgather;
  std::vector<float> input_;
  std::vector<float> output_;
};

Status run(int argc, char** argv) {
  HORO_TRY(const Options options, parse_options(argc, argv));
  MpiCollectives contender;
  return run_collectives(contender, options);
}

}  // namespace
}  // namespace horo::bench

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int code = horo::bench::exit_code_of(horo::bench::run(argc, argv), "bench_collectives_mpi");
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return 0;
}
