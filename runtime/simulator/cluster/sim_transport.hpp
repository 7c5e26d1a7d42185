// SPDX-License-Identifier: Apache-2.0
// The ranks of a set that exchange messages over the virtual network: for the code that uses a
// Transport, run by fibers. Connections are made when a message first needs them, as the module
// `tcp` does.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backends/flat/transport.hpp"
#include "runtime/simulator/cluster/fiber.hpp"
#include "runtime/simulator/network.hpp"

namespace horo::runtime::sim {

/// A set of ranks. Thread: owner.
class SimWire {
 public:
  /// `hosts`: by position.
  SimWire(Network& network, std::vector<int> hosts)
      : network_(network), hosts_(std::move(hosts)), ranks_(hosts_.size()) {}

  /// For a rank's fibers: its worker's messages are sent by one fiber.
  std::unique_ptr<Transport> transport(int position);

  std::uint64_t connections() const { return edges_.size(); }

  /// Descriptors of a rank: workers have connections of their own.
  std::uint64_t connections_of(int position) const {
    return ranks_[static_cast<std::size_t>(position)].connections;
  }

  std::uint64_t messages() const { return messages_; }

 private:
  class RankTransport;
  class Receive;

  /// The messages from one rank to another, of one worker.
  struct Arrivals {
    std::deque<std::string> came;  ///< Empty strings for messages without memory.
    std::deque<Receive*> waiting;
    std::deque<std::uint64_t> tags;  ///< They belong to `came`.
  };

  struct RankState {
    TimePoint busy{};  ///< Until then the rank handles messages.
    std::uint64_t connections = 0;
    std::map<std::pair<int, std::uint32_t>, Arrivals> from;
  };

  void post(int from, const TransportMessage& message);
  void deliver(int from, int to, std::uint32_t worker, std::uint64_t tag, std::string bytes);
  TimePoint connected(int a, int b, std::uint32_t worker);

  Network& network_;
  const std::vector<int> hosts_;
  std::vector<RankState> ranks_;
  std::map<std::pair<std::pair<int, int>, std::uint32_t>, TimePoint> edges_;  ///< Ready when.
  std::uint64_t messages_ = 0;
};

}  // namespace horo::runtime::sim
