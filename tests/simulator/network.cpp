// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/network.hpp"

#include <algorithm>

namespace horo::runtime::sim {

void Network::at(TimePoint when, Event event) {
  events_.push({.when = std::max(when, now_), .number = made_++, .event = std::move(event)});
}

void Network::carry(int from, int to, std::size_t bytes, TimePoint departure, Event arrive) {
  auto& wire = wires_[{from, to}];
  const auto seconds = static_cast<double>(bytes + model_.overhead_bytes) / model_.bytes_per_second;
  wire.free = std::max(wire.free, departure) + Duration(static_cast<Duration::rep>(seconds * 1e9));
  auto arrival = wire.free + model_.latency;
  if (model_.jitter > Duration::zero()) {
    const auto most = static_cast<std::uint64_t>(model_.jitter.count());
    arrival += Duration(static_cast<Duration::rep>(random_() % (most + 1)));
  }
  wire.arrived = std::max(wire.arrived, arrival);
  at(wire.arrived, std::move(arrive));
}

bool Network::step() {
  if (events_.empty()) return false;
  // The queue gives no mutable access to what leaves it next.
  auto item = std::move(const_cast<Item&>(events_.top()));
  events_.pop();
  now_ = item.when;
  item.event();
  return true;
}

void Network::run_until(TimePoint when, const std::function<bool()>& done) {
  while (!done() && !events_.empty() && events_.top().when <= when) step();
}

}  // namespace horo::runtime::sim
