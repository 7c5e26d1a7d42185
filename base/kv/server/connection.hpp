// SPDX-License-Identifier: Apache-2.0
// One client's socket and what the server knows of it; private to the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/kv/server/session.hpp"
#include "base/kv/wire.hpp"
#include "base/loop/loop.hpp"

namespace horo::kv {

using ConnectionId = std::uint64_t;

/// A get or wait that has no answer yet. It stands in the list of exactly one key that is not
/// there.
struct PendingWait {
  Request request;
  std::size_t position = 0;  ///< Keys before it have been seen.
};

/// Thread: the loop's.
class ServerConnection {
 public:
  /// Takes `descriptor` over.
  ServerConnection(ConnectionId connection_id, int descriptor, ServerSession initial,
                   TimePoint accepted);
  ~ServerConnection();
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;

  enum class Progress { done, blocked, closed };

  /// Reads once, what the session has room for. blocked: nothing there.
  Progress read();

  /// Writes output until it is done or the socket is full.
  Progress write();

  const ConnectionId id;
  const int fd;
  const TimePoint since;

  ServerSession session;
  Descriptor watched;
  bool is_reading = false;
  Subscription write_timer;  ///< Runs while the peer takes nothing.
  std::optional<PendingWait> wait;
  std::optional<std::list<ConnectionId>::iterator>
      unauthenticated;  ///< Place in the server's list.
};

}  // namespace horo::kv
