// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "launcher/protocol/sealed_bytes.hpp"

namespace horo::launcher {

/// Tells the launcher at the other end of `out`, in one blocking write, why no agent starts.
/// `seals` is as in HostAgent::Options. Thread: any.
void refuse_to_start(int out, const Error& reason, protocol::SealedBytes* seals);

}  // namespace horo::launcher
