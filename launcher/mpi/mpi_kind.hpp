// SPDX-License-Identifier: Apache-2.0
// Which MPI an mpirun belongs to. Each MPI needs a different command line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace horo::launcher {

enum class MpiKind : std::uint8_t { open_mpi, spectrum, mpich, intel };

std::string_view name(MpiKind kind);

/// Reads the output of `program --version`; `program` is for the message. Pure.
/// Fails: unsupported, naming the known MPIs and what to do.
Result<MpiKind> recognise_mpi(std::string_view program, std::string_view version_text);

/// Runs `program --version`. Blocks: for the answer, until 10 s have passed or the
/// descriptor `cancel` is readable (-1: there is none).
/// Fails: as recognise_mpi; timed_out, cancelled, and as ProcessGroup::spawn.
Result<MpiKind> ask_for_mpi(const std::string& program, int cancel = -1);

}  // namespace horo::launcher
