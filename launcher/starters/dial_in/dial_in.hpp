// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "launcher/protocol/sealed_bytes.hpp"
#include "launcher/ranks/rank_set.hpp"

namespace horo::launcher {

struct DialledIn {
  Inheritance inheritance;
  /// They encrypt this process's standard input and output.
  std::shared_ptr<protocol::SealedBytes> seals;
};

/// For `horo-agent --dial-in`, which another system (mpirun, jsrun, ...) has started to own one
/// rank. Connects to the launcher and makes that connection this process's standard input and
/// output, on which all bytes are encrypted. Returns also what the rank gets from this process: its
/// environment, and the descriptors over which it speaks to the MPI's own daemon. Blocks: until
/// connected, 20 s at most. Fails: as read_rank_claim and dial_launcher; io.
Result<DialledIn> dial_in();

}  // namespace horo::launcher
