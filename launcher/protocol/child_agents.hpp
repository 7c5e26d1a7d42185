// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/loop/loop.hpp"
#include "launcher/protocol/protocol.hpp"

namespace horo::launcher {

/// The agents of other hosts that an agent starts for the launcher. It relays their frames without
/// decoding them, until each agent is gone. Thread: the loop's.
class ChildAgents {
 public:
  struct ParentLink {
    std::function<void(const protocol::Message&)> send;  ///< To the launcher.
    /// The last child agent is gone. Not called from within a function of ChildAgents.
    Task on_empty;
  };

  virtual ~ChildAgents() = default;  ///< Ends the children's input.
  virtual void take(const protocol::Reach& reach) = 0;
  virtual void take(const protocol::Carry& carry) = 0;
  virtual void take(const protocol::Leave& leave) = 0;
  /// While not wanted, nothing is read from any child agent.
  virtual void want_input(bool wanted) = 0;
  /// Ends the input of all: they end their ranks, and then themselves.
  virtual void hang_up() = 0;
  virtual bool empty() const = 0;
  /// Children of this process that the connections need, such as ssh programs, or that have some
  /// time to end since their connection is gone. They are reaped here.
  virtual std::vector<int> processes() const = 0;
};

using MakeChildAgents = std::function<std::unique_ptr<ChildAgents>(Loop&, ChildAgents::ParentLink)>;

}  // namespace horo::launcher
