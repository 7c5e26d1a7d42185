// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator/network.hpp"

#include <algorithm>

namespace horo::runtime::sim {

void Network::at(TimePoint when, Event event) {
  events_.push({.when = std::max(when, now_), .number = made_++, .event = std::move(event)});
}

void Network::use(ClusterLinks links) {
  cards_.assign(links.hosts.size(), Card{});
  links_ = std::move(links);
}

/// The bytes pass both cards at the same time, each after those that came to it before. Frames from
/// host to host keep their order.
void Network::cross(int from, int to, double bytes, TimePoint departure, Event arrive) {
  const auto& a = links_->hosts[static_cast<std::size_t>(from)];
  const auto& b = links_->hosts[static_cast<std::size_t>(to)];
  auto& out = cards_[static_cast<std::size_t>(from)];
  const auto latency = (a.latency + b.latency) / 2;
  const auto begin = std::max(out.out, departure - a.credit());
  out.out = begin + a.taking(bytes);
  out.sent += static_cast<std::uint64_t>(bytes);
  at(std::max(begin, departure) + latency,
     [=, this, last = std::max(out.out, departure) + latency, credit = b.credit(),
      taken = b.taking(bytes), arrive = std::move(arrive)]() mutable {
       auto& in = cards_[static_cast<std::size_t>(to)];
       in.in = std::max(in.in, now_ - credit) + taken;
       auto arrival = std::max(in.in, last);
       if (model_.jitter > Duration::zero()) {
         auto& wire = wires_[{from, to}];
         arrival = wire.arrived = std::max(wire.arrived, arrival + draw_jitter());
       }
       at(arrival, std::move(arrive));
     });
}

Duration Network::draw_jitter() {
  if (model_.jitter <= Duration::zero()) return {};
  const auto most = static_cast<std::uint64_t>(model_.jitter.count());
  return Duration(static_cast<Duration::rep>(random_() % (most + 1)));
}

Traffic Network::traffic(int host) const {
  const auto index = static_cast<std::size_t>(host);
  return index < traffic_.size() ? traffic_[index] : Traffic{};
}

/// The bytes of a frame with all headers.
std::size_t Network::on_wire(std::size_t bytes) const {
  const auto more = bytes == 0 ? 0 : (bytes - 1) / model_.packet_bytes;
  return bytes + model_.overhead_bytes + more * model_.packet_overhead;
}

void Network::count(int host, std::size_t bytes) {
  const auto index = static_cast<std::size_t>(host);
  if (index >= traffic_.size()) traffic_.resize(index + 1);
  ++traffic_[index].frames;
  traffic_[index].bytes += on_wire(bytes);
}

void Network::carry(int from, int to, std::size_t bytes, TimePoint departure, Event arrive) {
  if (from != to) {
    count(from, bytes);
    count(to, bytes);
  }
  if (links_) {
    const auto all = static_cast<double>(on_wire(bytes));
    if (from != to) return cross(from, to, all, departure, std::move(arrive));
    const auto seconds = static_cast<double>(bytes) / links_->inside.bytes_per_second;
    return at(
        departure + links_->inside.latency + Duration(static_cast<Duration::rep>(seconds * 1e9)),
        std::move(arrive));
  }
  auto& wire = wires_[{from, to}];
  const auto seconds = static_cast<double>(on_wire(bytes)) / model_.bytes_per_second;
  wire.free = std::max(wire.free, departure) + Duration(static_cast<Duration::rep>(seconds * 1e9));
  wire.arrived = std::max(wire.arrived, wire.free + model_.latency + draw_jitter());
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
