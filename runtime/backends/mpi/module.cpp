// SPDX-License-Identifier: Apache-2.0
// The modules `openmpi` and `mpich`.
#include "runtime/backends/module.hpp"

#include "runtime/backends/flat/make_flat.hpp"
#include "runtime/backends/mpi/mpi_backend.hpp"
#include "runtime/backends/mpi/mpi_exchange.hpp"
#include "runtime/backends/mpi/mpi_library.hpp"

namespace horo::runtime {

namespace {

Status probe() {
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (finalised != 0) return fail(Errc::unavailable, "this program has finalised MPI");
  int initialised = 0;
  MPI_Initialized(&initialised);
  return initialised == 0 ? Status() : check_tags();
}

Result<std::unique_ptr<Backend>> make(const Communicator& communicator) {
  HORO_TRY_STATUS(check(communicator));
  HORO_TRY(auto comm, mpi_comm_of(communicator));
  MpiOptions options{.name = HORO_MPI_NAME,
                     .members = communicator.members,
                     .slot = communicator.slot,
                     .timeout = communicator.timeout};
  return std::unique_ptr<Backend>(
      std::make_unique<MpiBackend>(std::move(comm), mesh_of(communicator), std::move(options)));
}

}  // namespace

}  // namespace horo::runtime

HORO_BACKEND_MODULE(.name = HORO_MPI_NAME, .probe = &horo::runtime::probe,
                    .make = &horo::runtime::make, .exchange = &horo::runtime::make_mpi_exchange,
                    .open_device = nullptr);
