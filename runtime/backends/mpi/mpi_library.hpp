// SPDX-License-Identifier: Apache-2.0
// The MPI library of this process: initialised by the program, or by us.
#pragma once

#include <mpi.h>

#include "base/result.hpp"
#include "runtime/backends/communicator.hpp"

namespace horo::runtime {

/// Initialises MPI unless the program has done so. If we initialise it, we finalise it at exit, but
/// not after an abort, because MPI_Finalize waits for all ranks.
/// Fails: unavailable (it was finalised, or another MPI is in this process), io.
Status start_mpi(bool threads);

/// From now on MPI is not finalised at exit.
void abandon_mpi();

/// Whether the calling thread may call MPI: any, one at a time, from THREAD_SERIALIZED on; else
/// only the one that initialised it. Thread: any.
bool may_call_mpi();

/// The error of an MPI call as ours; ok for MPI_SUCCESS.
Status mpi_status(int code, const char* call);

/// A communicator of the members, whose errors return.
/// Blocks: until all members have called it. Fails: invalid_argument (a member that MPI_COMM_WORLD
/// does not have, or this process is another one there), and as MPI.
Result<MPI_Comm> make_comm(const Communicator& communicator);

/// Frees the communicator, because an MPI has only a few thousand. Does nothing once MPI is
/// finalised.
void free_comm(MPI_Comm comm);

}  // namespace horo::runtime
