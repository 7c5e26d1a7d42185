// SPDX-License-Identifier: Apache-2.0
// Time and network of a simulation: events in order of virtual time, and connections with latency,
// bandwidth and jitter that keep the order of what they carry.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace horo::runtime::sim {

/// The costs of frames. The processing costs are about those of a system call, a seal and decoding.
struct LinkModel {
  Duration latency = std::chrono::microseconds(50);
  Duration jitter{};  ///< Largest random addition to the latency, by seed.
  double bytes_per_second = 1.25e9;
  std::size_t overhead_bytes = 86;  ///< Per frame: length, tag, TCP/IP and Ethernet headers.
  Duration send_cost = std::chrono::microseconds(3);
  Duration receive_cost = std::chrono::microseconds(4);
};

/// Thread: owner.
class Network {
 public:
  using Event = std::function<void()>;

  Network(const LinkModel& model, std::uint64_t seed) : model_(model), random_(seed) {}

  TimePoint now() const { return now_; }

  const LinkModel& model() const { return model_; }

  std::mt19937_64& random() { return random_; }

  /// Runs `event` at `when`, not before now; events of one moment run in the order of their making.
  void at(TimePoint when, Event event);

  void after(Duration delay, Event event) { at(now_ + delay, std::move(event)); }

  /// Carries `bytes` from host to host, handed over at `departure`; `arrive` runs at the other end.
  void carry(int from, int to, std::size_t bytes, TimePoint departure, Event arrive);

  /// Runs the next event; false when there is none.
  bool step();

  /// Runs events until `when`, or until `done`.
  void run_until(TimePoint when, const std::function<bool()>& done);

 private:
  struct Item {
    TimePoint when;
    std::uint64_t number = 0;
    Event event;
  };

  struct Later {
    bool operator()(const Item& a, const Item& b) const {
      return std::pair(a.when, a.number) > std::pair(b.when, b.number);
    }
  };

  struct Wire {
    TimePoint free{};     ///< When the last byte handed over has left.
    TimePoint arrived{};  ///< When the last frame arrives.
  };

  const LinkModel model_;
  std::mt19937_64 random_;
  TimePoint now_{};
  std::uint64_t made_ = 0;
  std::priority_queue<Item, std::vector<Item>, Later> events_;
  std::map<std::pair<int, int>, Wire> wires_;
};

}  // namespace horo::runtime::sim
