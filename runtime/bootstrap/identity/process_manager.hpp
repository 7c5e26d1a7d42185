// SPDX-License-Identifier: Apache-2.0
// One text from rank 0 to all ranks, through the process manager that started them. The text has
// the address and secret of the job's store, so nothing else is needed of the process manager.
#pragma once

#include <cstdint>
#include <string>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/bootstrap/identity/identity.hpp"

namespace horo::runtime::bootstrap {

inline constexpr std::size_t kMostWord = 900;  ///< PMI gives a value 1,024 bytes.

/// True where the environment names a PMIx server: under Open MPI's mpirun and srun --mpi=pmix.
bool has_pmix(const Lookup& lookup);

/// `word` counts on rank 0 only. Every rank calls it. May be called in a process that uses MPI,
/// before or after MPI_Init. Blocks. Fails: not_found (no libpmix.so.2), timed_out, unavailable
/// (with PMIx's own words).
Result<std::string> broadcast_by_pmix(Rank me, const std::string& word, const Deadline& deadline);

/// Checks that libpmix.so.2 is installed and has the functions needed. Fails: not_found,
/// version_mismatch.
Status pmix_usable();

/// Before the rank ends, as leave_pmi.
void leave_pmix();

/// The same through the descriptor that MPICH's mpiexec and srun --mpi=pmi2 give each rank, by the
/// wire protocol of PMI 1. `word` has no blanks. Fails: timed_out, peer_lost, protocol, io.
Result<std::string> broadcast_by_pmi(int pmi_fd, Rank me, const std::string& word,
                                     const Deadline& deadline);

/// Before the rank ends: tells the process manager, which would otherwise take the end for a crash
/// and kill the other ranks. Does nothing if `pmi_fd` is no longer the socket `inode`, or if an MPI
/// in this process still has to say so itself.
void leave_pmi(int pmi_fd, std::uint64_t inode);

/// 0 if `fd` is no socket.
std::uint64_t socket_inode(int fd);

}  // namespace horo::runtime::bootstrap
