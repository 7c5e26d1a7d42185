// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/loop/loop.hpp"
#include "launcher/starters/link/carrier.hpp"

namespace horo::launcher {

/// Limits the logins under way at each ssh server. A server drops connections at random when many
/// have not logged in yet (MaxStartups, from 10 on). A jump host counts as the server of all hosts
/// behind it. Thread: the loop's.
class LoginLimiter {
 public:
  static constexpr int kMost = 8;  ///< Logins under way at one server.

  /// A place in the queue, and then a login under way; given back when destroyed.
  using Slot = std::shared_ptr<void>;

  /// Calls `start` when a login at `server` may begin, perhaps at once.
  Slot queue(const std::string& server, Task start);

 private:
  struct Login;

  struct Server {
    int under_way = 0;
    std::deque<std::weak_ptr<Login>> waiting;
  };

  void start_next(Server& server);

  std::unordered_map<std::string, Server> servers_;
};

/// Opens `carrier` when a login at `server` may begin, and makes room for the next one when its
/// agent has greeted or is gone. `limiter` outlives the carrier.
std::unique_ptr<Carrier> make_limited_carrier(Loop& loop, LoginLimiter& limiter, std::string server,
                                              std::unique_ptr<Carrier> carrier);

}  // namespace horo::launcher
