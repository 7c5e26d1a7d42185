// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/loop/loop.hpp"
#include "base/result.hpp"
#include "launcher/agent/channel.hpp"

namespace horo::launcher {

/// What carries the bytes between this process and one agent: a socket to a child, an ssh channel.
/// Destroying it ends the agent's input. Handlers run from the loop, and may destroy the carrier.
/// Thread: the loop's.
class Carrier {
 public:
  struct Handlers {
    /// The stream is there, both ways over `descriptor`, which is the carrier's. Once.
    std::function<void(int descriptor)> on_open;
    /// Nothing of the agent is left, or in reach; why, in case it has given no reason itself. Once,
    /// also in place of on_open.
    std::function<void(Error why)> on_gone;
  };

  virtual ~Carrier() = default;
  /// Fails: as the way of starting does, when that is known at once; then no handler is called.
  virtual Status open(Handlers handlers) = 0;
  /// Ends the agent's input; its end, and on_gone, follow.
  virtual void hang_up() = 0;
  /// Ends what does not answer, as far as it is in reach; on_gone follows.
  virtual void give_up() = 0;

  /// The agent is gone without a last word: ends what it may have left in this control group.
  virtual void bury(const std::string& /*control_group*/) {}

  /// What takes time until the stream is there.
  virtual std::string step() const { return {}; }

  /// Whether the agent is on another host, which may vanish.
  virtual bool remote() const { return false; }

  /// Whether nobody is between this process and that host: a login shell may write before the
  /// agent, and it is we who have to notice a silence.
  virtual bool direct() const { return true; }

  /// From on_open on: messages over what it carries; `descriptor` is what on_open gave.
  virtual Result<std::unique_ptr<protocol::Conduit>> converse(
      Loop& loop, int descriptor, protocol::Conduit::Handlers handlers) {
    HORO_TRY(auto channel,
             protocol::Channel::open(loop, descriptor, descriptor, std::move(handlers)));
    return std::unique_ptr<protocol::Conduit>(std::move(channel));
  }

  /// The agent's first word has come.
  virtual void greeted() {}

  /// Whether more than this machine has to do with what step() says: a connection stands.
  virtual bool connected() const { return true; }

  /// A child of this process that it needs; 0: none.
  virtual int process() const { return 0; }

  /// Once connected: the other host's address, as a number; empty: not known.
  virtual std::string peer_address() const { return {}; }

  /// Once open: this machine's address, as a number, for that host. Empty: not remote.
  virtual std::string launcher_address() const { return {}; }
};

}  // namespace horo::launcher
