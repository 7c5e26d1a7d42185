// SPDX-License-Identifier: Apache-2.0
// The MPI library of this process: initialised by the program, or by us.
#pragma once

#include <atomic>
#include <memory>
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

/// Whether this MPI, which is initialised, has as many tags as the backend needs. Fails:
/// unsupported.
Status check_tags();

/// An MPI communicator, whose errors return. Thread: the last user's, which frees it.
class MpiComm {
 public:
  /// Blocks: until all members have called it. Fails: invalid_argument (a member that
  /// MPI_COMM_WORLD does not have, or this process is another one there), and as MPI.
  static Result<std::shared_ptr<MpiComm>> make(const Communicator& communicator);

  /// Frees the communicator, because an MPI has only a few thousand. Not after keep(), nor once MPI
  /// is finalised.
  ~MpiComm();
  MpiComm(const MpiComm&) = delete;
  MpiComm& operator=(const MpiComm&) = delete;

  MPI_Comm get() const { return comm_; }

  /// Something is on its way: it is never freed. Thread: any.
  void keep() { kept_.store(true); }

 private:
  explicit MpiComm(MPI_Comm comm) : comm_(comm) {}

  const MPI_Comm comm_;
  std::atomic<bool> kept_{false};
};

/// An MPI communicator, and whether its ranks are the members in their order or those of the job.
struct MembersComm {
  std::shared_ptr<MpiComm> comm;
  bool shared = false;
};

/// While the job starts, a communicator of the members, by MPI. Later that of the job, without a
/// call of MPI: MPI has no call that makes a communicator of some ranks without blocking, and other
/// sets may be at work in another thread.
/// Blocks: while the job starts, until all members have called it. Fails: as start_mpi, check_tags
/// and MpiComm::make; unavailable (the job has not connected by MPI).
Result<MembersComm> mpi_comm_of(const Communicator& communicator);

}  // namespace horo::runtime
