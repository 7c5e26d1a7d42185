// SPDX-License-Identifier: Apache-2.0
// The launcher's side of agents that another system has started: a TCP port and a secret.
// docs/design/agent-protocol.md has the bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/kv/auth.hpp"
#include "base/loop/loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "launcher/starters/dial_in/rank_claim.hpp"

namespace horo::launcher {

enum class ListenOn : std::uint8_t { loopback, all_addresses };

/// The connection to an agent, and the rank that it claims to own.
struct DialledAgent {
  UniqueFd connection;
  kv::SealPair seals;  ///< For all bytes that follow.
  RankClaim claim;
};

/// Accepts connections of agents that prove to know the secret. A caller that does not gets no
/// answer, not even an error. Thread: the loop's.
class AgentListener {
 public:
  /// Takes an authenticated connection.
  using Accept = std::function<void(DialledAgent agent)>;

  /// `accept` is called from the loop. Fails: unavailable, io.
  static Result<std::unique_ptr<AgentListener>> open(Loop& loop, ListenOn where, Accept accept);
  ~AgentListener();
  AgentListener(const AgentListener&) = delete;
  AgentListener& operator=(const AgentListener&) = delete;

  /// The value of HORO_LAUNCHER: "address:port,address:port".
  std::string addresses() const;
  /// The value of HORO_LAUNCHER_SECRET: hexadecimal digits.
  std::string secret() const;

 private:
  class Impl;
  explicit AgentListener(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace horo::launcher
