// SPDX-License-Identifier: Apache-2.0
// Which MPI an mpirun belongs to: each wants another command line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace horo::launcher {

enum class MpiKind : std::uint8_t { open_mpi, spectrum, mpich, intel };

std::string_view name(MpiKind kind);

/// From what `program --version` printed; `program` is for the message. Pure.
/// Fails: unsupported, naming what was looked for and the way out.
Result<MpiKind> recognise_mpi(std::string_view program, std::string_view version_text);

/// Asks the program itself. Blocks: until it has answered, 10 s at most.
/// Fails: as recognise_mpi; timed_out, and as ProcessGroup::spawn.
Result<MpiKind> ask_for_mpi(const std::string& program);

}  // namespace horo::launcher
