// SPDX-License-Identifier: Apache-2.0
// The modules `openmpi` and `mpich`.
#include "runtime/backends/module.hpp"

#include "runtime/backends/mpi/mpi_backend.hpp"
#include "runtime/backends/mpi/mpi_exchange.hpp"
#include "runtime/backends/mpi/mpi_library.hpp"

namespace horo::runtime {

namespace {

constexpr int kLeastTagBound = 1 << 26;

Status probe() {
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (finalised != 0) return fail(Errc::unavailable, "this program has finalised MPI");
  return {};
}

Result<std::unique_ptr<Backend>> make(const Communicator& communicator) {
  HORO_TRY_STATUS(check(communicator));
  HORO_TRY_STATUS(start_mpi(communicator.mpi_threads));
  HORO_TRY(const auto comm, make_comm(communicator));
  const int* bound = nullptr;
  int known = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &known);
  if (known == 0 || *bound < kLeastTagBound) {
    return fail(Errc::unsupported, "this MPI has tags up to {} only, horo needs {}",
                known == 0 ? 0 : *bound, kLeastTagBound);
  }
  const Mesh mesh{.position = communicator.position,
                  .size = communicator.size(),
                  .shares_hosts = shares_hosts(communicator),
                  .rank_order = communicator.rank_order};
  MpiOptions options{
      .name = HORO_MPI_NAME, .members = communicator.members, .timeout = communicator.timeout};
  return std::unique_ptr<Backend>(std::make_unique<MpiBackend>(comm, mesh, std::move(options)));
}

}  // namespace

}  // namespace horo::runtime

HORO_BACKEND_MODULE(.name = HORO_MPI_NAME, .probe = &horo::runtime::probe,
                    .make = &horo::runtime::make, .exchange = &horo::runtime::make_mpi_exchange,
                    .open_device = nullptr, .serial = true);
