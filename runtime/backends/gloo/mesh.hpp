// SPDX-License-Identifier: Apache-2.0
// Connections between some ranks over Gloo's TCP transport.
#pragma once

#include <memory>
#include <string>

#include <gloo/context.h>

#include "base/clock.hpp"
#include "base/kv/client.hpp"
#include "base/result.hpp"

namespace horo::runtime {

struct MeshSpec {
  int rank = 0;  ///< Position in this mesh, not in the job.
  int size = 1;
  std::string
      prefix;  ///< Of the keys; the same on all its ranks, different for every mesh and epoch.
  std::string interface;  ///< Network interface to use; empty: the one of `address`.
  std::string address;    ///< Own address or name to listen on; empty: that of the host's name.
  Duration timeout{};     ///< For the meeting, and later for each operation of the context.
};

/// Meets the other ranks through the key-value server and connects to each.
/// Thread: one at a time. Blocks: until all have come, at most `timeout` for each.
/// Fails: timed_out (names the key of the rank that has not come), invalid_argument (no such
/// interface or address, position out of range), peer_lost, and as kv::Client.
Result<std::shared_ptr<gloo::Context>> connect_mesh(kv::Client& client, const MeshSpec& spec);

}  // namespace horo::runtime
