// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <vector>

#include "base/kv/server/listener.hpp"
#include "base/loop/loop.hpp"

namespace horo::kv {

/// The addresses on which a server listens. It accepts while the server has room for connections
/// and the process has descriptors. Thread: the loop's.
class ListenerSet {
 public:
  struct Hooks {
    std::function<bool()> has_room;
    /// A connection waits and there is no room: nothing is accepted until resume_unless_waiting().
    std::function<void()> on_full;
    std::function<void(int fd)> on_connection;  ///< Takes the descriptor.
  };

  /// `loop` outlives it.
  ListenerSet(Loop& loop, Hooks hooks) : loop_(loop), hooks_(std::move(hooks)) {}

  /// Fails: as Listener::open.
  Status add(const Address& address);

  /// The address of the listener that is there for `address`; port 0: any port. Without one, adds
  /// it. Fails: as add.
  Result<Address> find_or_add(const Address& address);

  std::vector<Address> addresses() const;

  /// Accepts as long as there is room.
  void resume();

  /// The same, but not before the pause that a lack of descriptors has begun is over.
  void resume_unless_waiting() {
    if (!retry_) resume();
  }

 private:
  struct Watched {
    Listener listener;
    Descriptor descriptor;  ///< Declared after the listener, to be destroyed before it.
  };

  void accept_from(Watched& entry);
  void accept_at(Watched& entry);
  void pause();

  Loop& loop_;
  const Hooks hooks_;
  std::list<Watched> listeners_;  ///< A list: tasks refer to its elements.
  bool accepting_ = false;
  bool is_short_ = false;  ///< There are no descriptors left, and the log has said so.
  Subscription retry_;
};

}  // namespace horo::kv
