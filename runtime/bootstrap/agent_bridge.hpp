// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.hpp"
#include "base/strong.hpp"
#include "base/unique_fd.hpp"
#include "runtime/bootstrap/vigil.hpp"

namespace horo::runtime::bootstrap {

/// Under `horo run` the agent watches the ranks through the board that it made, which serves the
/// first epoch only. In every later one this rank stays a member there, so that the agent still
/// tells a loss from an end in good order, and what the agent says there is said on the later
/// `board` too. Fails: protocol, io.
Result<std::unique_ptr<Vigil>> bridge_to_agent(int agents_board, int board, LocalRank me);

}  // namespace horo::runtime::bootstrap
