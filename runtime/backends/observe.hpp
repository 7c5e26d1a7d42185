// SPDX-License-Identifier: Apache-2.0
// What a choice of backend is made from, found out in this process.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/backends/choose.hpp"

namespace horo::runtime {

/// Looks at the libraries of this process and at its environment.
MpiEvidence observe_mpi(const std::function<const char*(const char*)>& environment);

/// The modules for host memory, each tried: gloo, and the one for `mpi` unless it is empty.
std::vector<BackendCandidate> observe_candidates(const std::string& mpi, const std::string& folder);

}  // namespace horo::runtime
