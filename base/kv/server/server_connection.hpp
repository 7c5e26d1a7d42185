// SPDX-License-Identifier: Apache-2.0
// One client's socket and the server's state for it; private to the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/kv/kv_messages.hpp"
#include "base/kv/server/server_session.hpp"
#include "base/loop/loop.hpp"

namespace horo::kv {

using ConnectionId = std::uint64_t;

/// A get or wait that has no answer yet. The connection is in the list of exactly one key that does
/// not exist.
struct PendingWait {
  Request request;
  std::size_t position = 0;  ///< All keys before this index have existed.
};

/// Thread: the loop's.
class ServerConnection {
 public:
  /// Takes ownership of `descriptor`.
  ServerConnection(ConnectionId connection_id, int descriptor, ServerSession initial,
                   TimePoint accepted);
  ~ServerConnection();
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;

  enum class Progress { done, blocked, closed };

  /// Reads once, at most what the session has room for. blocked: nothing has arrived.
  Progress read();

  /// Writes output until it is done or the socket is full.
  Progress write();

  const ConnectionId id;
  const int fd;
  const TimePoint since;

  ServerSession session;
  Descriptor watched;
  bool is_reading = false;
  Subscription write_timer;  ///< Runs while the peer does not read its answer.
  std::optional<PendingWait> wait;
  std::optional<std::list<ConnectionId>::iterator>
      unauthenticated;  ///< Position in the server's list.
};

}  // namespace horo::kv
