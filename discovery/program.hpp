// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/wait_limit.hpp"

namespace horo::discovery {

/// Runs a short program and returns its standard output. The program gets no input; at `limit`
/// it and its process group are killed. Blocks: until it has ended, at most until `limit`.
/// Fails: not_found, permission_denied, timed_out, cancelled, unavailable (it failed: how, and the
/// end of its standard error), resource_exhausted (it printed more than 64 MiB), io.
Result<std::string> output_of(const std::vector<std::string>& command, WaitLimit limit);

}  // namespace horo::discovery
