// SPDX-License-Identifier: Apache-2.0
// An MPI library; the program is one rank. It uses MPI_Allreduce for one tensor, MPI_Iallreduce and
// MPI_Waitall for several.
#include <mpi.h>

#include "bench/harness.hpp"

namespace horo::bench {
namespace {

Status check(int code, const char* call) {
  if (code == MPI_SUCCESS) return {};
  return fail(Errc::io, "{} failed with code {}", call, code);
}

class MpiContender final : public Contender {
 public:
  MpiContender() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }

  int rank() const override { return rank_; }

  int ranks() const override { return ranks_; }

  Status prepare(const Workload& workload) override {
    tensors_.clear();
    for (const std::size_t count : workload.counts) tensors_.emplace_back(count);
    requests_.assign(workload.counts.size(), MPI_REQUEST_NULL);
    return {};
  }

  std::span<float> tensor(std::size_t index) override { return tensors_[index]; }

  Status step() override {
    if (tensors_.size() == 1) {
      auto& only = tensors_.front();
      return check(MPI_Allreduce(MPI_IN_PLACE, only.data(), static_cast<int>(only.size()),
                                 MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
                   "MPI_Allreduce");
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      HORO_TRY_STATUS(check(
          MPI_Iallreduce(MPI_IN_PLACE, tensors_[i].data(), static_cast<int>(tensors_[i].size()),
                         MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests_[i]),
          "MPI_Iallreduce"));
    }
    return check(
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
        "MPI_Waitall");
  }

  std::optional<std::uint64_t> entries() const override { return std::nullopt; }

 private:
  int rank_ = 0;
  int ranks_ = 1;
  std::vector<std::vector<float>> tensors_;
  std::vector<MPI_Request> requests_;
};

Status run(int argc, char** argv) {
  HORO_TRY(const Options options, parse_options(argc, argv));
  MpiContender contender;
  return run_cases(contender, options);
}

}  // namespace
}  // namespace horo::bench

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int code = horo::bench::exit_code_of(horo::bench::run(argc, argv), "bench_mpi");
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return 0;
}
