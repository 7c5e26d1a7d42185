// SPDX-License-Identifier: Apache-2.0
// The file of --space: variables of other libraries, and arguments of mpirun, that join a search.
//
//     variables:
//       NCCL_ALGO: [~, Ring, Tree]          # words; ~ means: not set
//       OMP_NUM_THREADS: {least: 1, most: 16, default: 4}
//     mpi_args:
//       eager: ["", "--mca btl_tcp_eager_limit 65536"]
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/common/document.hpp"
#include "apps/tune/trials/trial_space.hpp"

namespace horo::apps {

/// `lookup` works like getenv: a variable's value there is its default, if the file allows it.
/// Fails: invalid_argument, with the place in the file.
Result<std::vector<TrialDimension>> space_of_document(
    const DocumentPart& document, const std::function<const char*(const char*)>& lookup);

}  // namespace horo::apps
