// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/mpi/mpi_exchange.hpp"

#include <climits>
#include <numeric>

#include "runtime/backends/mpi/mpi_library.hpp"

namespace horo::runtime {

namespace {

class MpiExchange final : public Exchange {
 public:
  explicit MpiExchange(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    MPI_Comm local = MPI_COMM_NULL;
    MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local);
    if (local == MPI_COMM_NULL) return;
    MPI_Comm_rank(local, &local_rank_);
    MPI_Comm_size(local, &local_size_);
    MPI_Comm_free(&local);
  }

  int rank() const override { return rank_; }

  int size() const override { return size_; }

  int local_rank() const override { return local_rank_; }

  int local_size() const override { return local_size_; }

  Result<std::string> broadcast(std::string_view from_rank_0) override {
    std::string text(rank_ == 0 ? from_rank_0 : "");
    HORO_TRY(auto bytes, length_of(text));
    HORO_TRY_STATUS(mpi_status(MPI_Bcast(&bytes, 1, MPI_INT, 0, comm_), "MPI_Bcast"));
    text.resize(static_cast<std::size_t>(bytes));
    HORO_TRY_STATUS(mpi_status(MPI_Bcast(text.data(), bytes, MPI_BYTE, 0, comm_), "MPI_Bcast"));
    return text;
  }

  Result<std::vector<std::string>> gather(std::string_view mine) override {
    HORO_TRY(const auto bytes, length_of(mine));
    const auto n = static_cast<std::size_t>(size_);
    std::vector<int> lengths(n);
    HORO_TRY_STATUS(mpi_status(MPI_Allgather(&bytes, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm_),
                               "MPI_Allgather"));
    if (std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) > INT_MAX)
      return fail(Errc::resource_exhausted, "the data of all ranks together exceeds {} bytes",
                  INT_MAX);
    std::vector<int> begins(n);
    std::exclusive_scan(lengths.begin(), lengths.end(), begins.begin(), 0);
    std::string all(static_cast<std::size_t>(begins.back() + lengths.back()), '\0');
    HORO_TRY_STATUS(mpi_status(MPI_Allgatherv(mine.data(), bytes, MPI_BYTE, all.data(),
                                              lengths.data(), begins.data(), MPI_BYTE, comm_),
                               "MPI_Allgatherv"));
    std::vector<std::string> texts;
    for (std::size_t r = 0; r < n; ++r) {
      texts.push_back(
          all.substr(static_cast<std::size_t>(begins[r]), static_cast<std::size_t>(lengths[r])));
    }
    return texts;
  }

 private:
  static Result<int> length_of(std::string_view text) {
    if (text.size() > INT_MAX)
      return fail(Errc::resource_exhausted, "{} bytes are more than MPI counts", text.size());
    return static_cast<int>(text.size());
  }

  const MPI_Comm comm_;  ///< Lives as long as MPI, because freeing it would wait for all ranks.
  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  int local_size_ = 1;
};

}  // namespace

Result<std::unique_ptr<Exchange>> make_mpi_exchange() {
  HORO_TRY_STATUS(start_mpi(true));
  MPI_Comm comm = MPI_COMM_NULL;
  HORO_TRY_STATUS(mpi_status(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup"));
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return std::unique_ptr<Exchange>(std::make_unique<MpiExchange>(comm));
}

}  // namespace horo::runtime
