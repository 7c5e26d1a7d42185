// SPDX-License-Identifier: Apache-2.0
// Which module moves the tensors of a set, and why not another one. Pure: observe.hpp finds out
// what this process has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/knobs/choices.hpp"
#include "base/result.hpp"

namespace horo::runtime {

/// Facts that say which MPI a process belongs to.
struct MpiEvidence {
  bool openmpi_loaded = false;  ///< Its library is in this process.
  bool mpich_loaded = false;
  bool openmpi_launched = false;  ///< Its mpirun started this process.
  bool mpich_launched = false;
};

/// "openmpi", "mpich", or empty: none. A loaded library counts more than the program that started
/// the process, because a process can have only one MPI.
std::string mpi_of(const MpiEvidence& evidence);

/// A backend that a set could use.
struct BackendCandidate {
  std::string name;
  std::string why_not;  ///< Why it cannot be used, or is not; empty: it can.
};

struct BackendRequest {
  CpuOperations wanted = CpuOperations::automatic;
  /// The index of its host, for each of the ranks that are to be connected. A process set may have
  /// few of the job's ranks, on few of its hosts.
  std::vector<int> host_of = {0};
  std::uint64_t free_descriptors = ~std::uint64_t{0};  ///< That this process may still open.
  std::string mpi;                                     ///< As mpi_of().
  bool encrypts = false;                               ///< The user wants encryption between hosts.
  std::vector<BackendCandidate> candidates;
};

/// The backend that is used, and the others with their reasons.
struct BackendChoice {
  std::string name;  ///< "shm" or a module.
  std::vector<BackendCandidate> rejected;
};

/// Fails, with the reasons: unsupported (the backend that was asked for cannot be used),
/// unavailable (none can be used).
Result<BackendChoice> choose_backend(const BackendRequest& request);

}  // namespace horo::runtime
