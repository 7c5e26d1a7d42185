// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "runtime/bootstrap/local_group.hpp"
#include "runtime/bootstrap/vigil.hpp"

namespace horo::runtime::bootstrap {

/// Without an agent every rank watches all others of its host, each by its pidfd, in a thread that
/// sleeps otherwise. (A closed socket would be no sign of an end: forked children keep it open.)
/// The words are those that an agent has; like an agent, it kills a rank that keeps its peers'
/// memory for a second after the poison: one that is stopped could write there when it goes on.
/// Fails: unavailable (no descriptors), protocol (no board), io.
Result<std::unique_ptr<Vigil>> watch_peers(int board, std::vector<Peer> peers, std::string host);

}  // namespace horo::runtime::bootstrap
