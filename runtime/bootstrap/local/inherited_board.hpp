// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "base/worker_env.hpp"

namespace horo::runtime::bootstrap {

/// The board that the agent made: inherited, or, when a wrapper closed the descriptor, through the
/// agent's own. Fails: version_mismatch (launcher of another version), unavailable, protocol.
Result<UniqueFd> open_inherited_board(const WorkerIdentity& identity);

}  // namespace horo::runtime::bootstrap
