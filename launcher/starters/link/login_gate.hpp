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

/// An ssh server drops connections at random when many have not logged in yet (MaxStartups, from 10
/// on): so there are a few at a time to each, and all others wait. A jump host is such a server for
/// all hosts behind it. Thread: the loop's.
class LoginGate {
 public:
  static constexpr int kMost = 8;  ///< At a time and door.

  /// One who is in, or waits; ends when destroyed.
  using Ticket = std::shared_ptr<void>;

  /// `enter` is called when it is one's turn, perhaps at once.
  Ticket queue(const std::string& door, Task enter);

 private:
  struct Visitor;

  struct Door {
    int inside = 0;
    std::deque<std::weak_ptr<Visitor>> waiting;
  };

  void let_in(Door& door);

  std::unordered_map<std::string, Door> doors_;
};

/// Opens `carrier` when it is its turn at `door`, and makes room there when its agent greets, or it
/// is gone. `gate` outlives the carrier.
std::unique_ptr<Carrier> make_gated_carrier(Loop& loop, LoginGate& gate, std::string door,
                                            std::unique_ptr<Carrier> carrier);

}  // namespace horo::launcher
