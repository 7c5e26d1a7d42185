// SPDX-License-Identifier: Apache-2.0
// How an agent that another system has started connects to the launcher.
#pragma once

#include <string>

#include "base/deadline.hpp"
#include "base/kv/auth.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "launcher/starters/dial_in/rank_claim.hpp"

namespace horo::launcher {

/// Environment variables that tell an agent where the launcher listens ("address:port,...") and the
/// secret of the listener (64 hexadecimal digits).
inline constexpr const char* kLauncherVariable = "HORO_LAUNCHER";
inline constexpr const char* kLauncherSecretVariable = "HORO_LAUNCHER_SECRET";

/// The key with which both sides prove that they know a listener's secret.
kv::Secret listener_key(const kv::Secret& secret);

struct DialledLauncher {
  UniqueFd connection;
  kv::SealPair seals;  ///< For all bytes that follow.
};

/// Tries `addresses` in turn. Connects to the first one where the other side proves that it knows
/// `secret`, and sends `claim` there. Blocks: until `deadline`.
/// Fails: invalid_argument (malformed `secret`), permission_denied, unavailable, timed_out.
Result<DialledLauncher> dial_launcher(const std::string& addresses, const std::string& secret,
                                      const RankClaim& claim, Deadline deadline);

}  // namespace horo::launcher
