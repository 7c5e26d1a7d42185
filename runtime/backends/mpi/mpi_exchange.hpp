// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/backends/exchange.hpp"

namespace horo::runtime {

/// An exchange over MPI_COMM_WORLD; initialises MPI. Blocks: until all ranks have called it. Fails:
/// as start_mpi.
Result<std::unique_ptr<Exchange>> make_mpi_exchange();

}  // namespace horo::runtime
