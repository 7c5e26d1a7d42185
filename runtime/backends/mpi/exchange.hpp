// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/backends/exchange.hpp"

namespace horo::runtime {

/// Over MPI_COMM_WORLD; initialises MPI. Blocks: until all have come. Fails: as start_mpi.
Result<std::unique_ptr<Exchange>> make_mpi_exchange();

}  // namespace horo::runtime
