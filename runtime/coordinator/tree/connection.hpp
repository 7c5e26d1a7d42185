// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "runtime/coordinator/tree/node.hpp"

namespace horo::runtime::tree {

/// One TCP connection of a node.
struct Node::Connection {
  Connection(UniqueFd fd, Channel&& bytes, TimePoint since)
      : socket(std::move(fd)), channel(std::move(bytes)), made(since) {}

  UniqueFd socket;
  Channel channel;
  TimePoint made;
  std::optional<std::size_t> link;  ///< Once the leader has greeted it.
  bool to_parent = false;
  bool greeted = false;  ///< Our own hello is on its way.
  bool dead = false;
};

}  // namespace horo::runtime::tree
