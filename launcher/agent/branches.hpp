// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/loop/loop.hpp"
#include "launcher/agent/protocol.hpp"

namespace horo::launcher {

/// What an agent does for the agents of other hosts: it starts them and passes frames on, without
/// looking into them, until each has gone. Thread: the loop's.
class Branches {
 public:
  struct Trunk {
    std::function<void(const protocol::Message&)> send;  ///< To the launcher.
    Task on_empty;  ///< The last of them is gone. Not called from within a function of this.
  };

  virtual ~Branches() = default;  ///< Ends their input.
  virtual void take(const protocol::Reach& reach) = 0;
  virtual void take(const protocol::Carry& carry) = 0;
  virtual void take(const protocol::Leave& leave) = 0;
  /// While not wanted nothing is read of any of them.
  virtual void want_input(bool wanted) = 0;
  /// Ends the input of all: they end their ranks, and go.
  virtual void hang_up() = 0;
  virtual bool empty() const = 0;
  /// Children of this process that they need.
  virtual std::vector<int> processes() const = 0;
};

using MakeBranches = std::function<std::unique_ptr<Branches>(Loop&, Branches::Trunk)>;

}  // namespace horo::launcher
