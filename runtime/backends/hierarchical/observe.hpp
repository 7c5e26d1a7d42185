// SPDX-License-Identifier: Apache-2.0
// Finds out which backends this process could use.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/backends/hierarchical/choose.hpp"

namespace horo::runtime {

/// Checks the libraries of this process and its environment.
MpiEvidence observe_mpi(const std::function<const char*(const char*)>& environment);

/// Loads the modules for host memory: tcp, the one for `mpi` unless that is empty, and gloo if it
/// is `wanted` or there is no tcp.
std::vector<BackendCandidate> observe_candidates(CpuOperations wanted, const std::string& mpi,
                                                 const std::string& folder);

/// How many file descriptors this process may still open.
std::uint64_t free_descriptors();

}  // namespace horo::runtime
