// SPDX-License-Identifier: Apache-2.0
// The rank that an agent says it owns, when another system than the launcher has started it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace horo::launcher {

struct RankClaim {
  int rank = 0;
  int size = 1;
  int local_rank = -1;  ///< -1: the system that started the agent does not say.
  int local_size = -1;  ///< Likewise.
  std::string host;     ///< The host's own name for itself.
};

/// The bytes of a claim, and back. decode_claim fails: protocol.
std::string encode(const RankClaim& claim);
Result<RankClaim> decode_claim(std::string_view bytes);

/// Reads the claim, without its host, from the environment through `lookup`, which works like
/// getenv: HORO_DIAL_IN_RANK, _SIZE, _LOCAL_RANK and _LOCAL_SIZE, else the variables of Open MPI,
/// Spectrum MPI, jsrun, MPICH and Intel MPI.
/// Fails: not_found (none of them is set), invalid_argument.
Result<RankClaim> read_rank_claim(const std::function<const char*(const char*)>& lookup);

}  // namespace horo::launcher
