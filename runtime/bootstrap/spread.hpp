// SPDX-License-Identifier: Apache-2.0
// One word from rank 0 to all ranks, by the process manager that started them. That is all that is
// asked of it: with the address and secret of the store in that word everything else is ours.
#pragma once

#include <cstdint>
#include <string>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/bootstrap/identity.hpp"

namespace horo::runtime::bootstrap {

inline constexpr std::size_t kMostWord = 900;  ///< PMI gives a value 1,024 bytes.

/// True where the environment names a PMIx server: under Open MPI's mpirun and srun --mpi=pmix.
bool has_pmix(const Lookup& lookup);

/// `word` counts on rank 0 only. Every rank calls it. May be called in a process that uses MPI,
/// before or after MPI_Init. Blocks. Fails: not_found (no libpmix.so.2), timed_out, unavailable
/// (with PMIx's own words).
Result<std::string> spread_by_pmix(Rank me, const std::string& word, const Deadline& deadline);

/// That libpmix.so.2 is here and has what is needed. Fails: not_found, version_mismatch.
Status pmix_usable();

/// Once the rank ends, as leave_pmi.
void leave_pmix();

/// The same through the descriptor that MPICH's mpiexec and srun --mpi=pmi2 give each rank, by the
/// wire protocol of PMI 1. `word` has no blanks. Fails: timed_out, peer_lost, protocol, io.
Result<std::string> spread_by_pmi(int pmi_fd, Rank me, const std::string& word,
                                  const Deadline& deadline);

/// Once the rank ends: a process manager that hears nothing of that takes the end for a crash, and
/// kills the others. Only if `pmi_fd` is still the socket `inode`, and no MPI of this process has
/// yet to say it.
void leave_pmi(int pmi_fd, std::uint64_t inode);

/// 0: no socket.
std::uint64_t socket_inode(int fd);

}  // namespace horo::runtime::bootstrap
