// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/result.hpp"

namespace horo::discovery {

/// Runs a short program and returns its standard output. The program gets no input; at `deadline`
/// it and its process group are killed. Blocks: until it has ended, at most until `deadline`.
/// Fails: not_found, permission_denied, timed_out, unavailable (it failed: how, and the end of its
/// standard error), resource_exhausted (it printed more than 64 MiB), io.
Result<std::string> output_of(const std::vector<std::string>& command, Deadline deadline);

}  // namespace horo::discovery
