// SPDX-License-Identifier: Apache-2.0
// Which backend moves the tensors of a set, and why not another one. Pure: what is there is found
// out by others.
#pragma once

#include <string>
#include <vector>

#include "base/knobs/choices.hpp"
#include "base/result.hpp"
#include "runtime/backends/hierarchy.hpp"

namespace horo::runtime {

/// What tells which MPI a process belongs to.
struct MpiEvidence {
  bool openmpi_loaded = false;  ///< Its library is in this process.
  bool mpich_loaded = false;
  bool openmpi_launched = false;  ///< Its mpirun started this process.
  bool mpich_launched = false;
};

/// "openmpi", "mpich", or empty: none. What is loaded counts more than who started the process: a
/// process has room for one.
std::string mpi_of(const MpiEvidence& evidence);

/// A module that could be used; `why_not` is empty when it can.
struct BackendCandidate {
  std::string name;
  std::string why_not;
};

struct BackendRequest {
  CpuOperations wanted = CpuOperations::automatic;
  int hosts = 1;
  std::string mpi;  ///< As mpi_of().
  std::vector<BackendCandidate> candidates;
};

/// A backend, and the others with their reasons.
struct BackendChoice {
  std::string name;  ///< "shm" or a module.
  std::vector<BackendCandidate> rejected;
};

/// Fails: unsupported, unavailable: what was asked for, or everything, cannot be used; with the
/// reasons.
Result<BackendChoice> choose_backend(const BackendRequest& request);

/// The way of one bucket between hosts.
enum class Way : std::uint8_t { flat, hierarchical };

struct WayChoice {
  Way way = Way::flat;
  std::string_view reason;
};

/// `least`: bytes from which the hierarchy's two more steps pay.
WayChoice choose_way(const Hierarchy& hierarchy, const Signature& like, std::uint64_t bytes,
                     std::uint64_t least);

}  // namespace horo::runtime
