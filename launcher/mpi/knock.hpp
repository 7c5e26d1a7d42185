// SPDX-License-Identifier: Apache-2.0
// How an agent that mpirun has started finds the launcher, and says which rank it is to own.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/deadline.hpp"
#include "base/kv/auth.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace horo::launcher {

/// What an agent that owns one rank says of it: what the MPI has told it.
struct MpiPlace {
  int rank = 0;
  int size = 1;
  int local_rank = -1;  ///< -1: the MPI does not say.
  int local_size = -1;
  std::string host;  ///< As the host calls itself.
};

/// The environment variables by which an agent finds the door.
inline constexpr const char* kDoorVariable = "HORO_LAUNCHER";
inline constexpr const char* kDoorSecretVariable = "HORO_LAUNCHER_SECRET";

/// The key with which both sides prove that they know the secret of a door.
kv::Secret door_key(const kv::Secret& secret);

/// Bytes of a place, and back. Fails: protocol.
std::string encode(const MpiPlace& place);
Result<MpiPlace> decode_place(std::string_view bytes);

/// Connects to the first of `addresses` behind which somebody knows `secret`, and
/// says `place`. Blocks: until `deadline`.
/// Fails: invalid_argument (what the variables hold), permission_denied, unavailable, timed_out.
Result<UniqueFd> knock(const std::string& addresses, const std::string& secret,
                       const MpiPlace& place, Deadline deadline);

/// From the variables of Open MPI, Spectrum, jsrun, MPICH and Intel MPI, through `lookup` as
/// getenv. Fails: not_found (started by none of them), invalid_argument.
Result<MpiPlace> read_mpi_place(const std::function<const char*(const char*)>& lookup);

}  // namespace horo::launcher
