// SPDX-License-Identifier: Apache-2.0
// Time and network of a simulation: events in order of virtual time, and connections with latency,
// bandwidth and jitter that keep the order of what they carry.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
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
  /// TCP cuts a frame into packets of so many bytes, and each after the first has headers again.
  std::size_t packet_bytes = 1448, packet_overhead = 66;
  Duration send_cost = std::chrono::microseconds(3);
  Duration receive_cost = std::chrono::microseconds(4);
};

/// A host's link to the switch, which all its connections share, in both directions.
struct Uplink {
  Duration latency{};  ///< A message from host to host has half of each side's.
  double bytes_per_second = 1.25e9;
  /// So many bytes pass at once after a pause: links of virtual machines and tc's tbf are limited
  /// by a bucket of tokens, which a pause fills.
  double burst_bytes = 0;

  Duration taking(double bytes) const {
    return Duration(static_cast<Duration::rep>(bytes / bytes_per_second * 1e9));
  }

  /// The time that the burst saves.
  Duration credit() const { return taking(burst_bytes); }
};

/// Links of a described cluster. Without it each pair of hosts has a wire of its own.
struct ClusterLinks {
  std::vector<Uplink> hosts;
  Uplink inside;  ///< Between two processes of one host.
};

/// Frames that a host has sent to other hosts or got from them.
struct Traffic {
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;  ///< With the overhead of frames and packets.
};

/// Thread: owner.
class Network {
 public:
  using Event = std::function<void()>;

  Network(const LinkModel& model, std::uint64_t seed) : model_(model), random_(seed) {}

  /// From now on.
  void use(ClusterLinks links);

  const std::optional<ClusterLinks>& links() const { return links_; }

  TimePoint now() const { return now_; }

  /// Bytes that `host` has sent to other hosts, with the overhead of frames and packets.
  std::uint64_t sent(int host) const {
    return cards_.empty() ? 0 : cards_[static_cast<std::size_t>(host)].sent;
  }

  /// Since the last forget_traffic(). A frame counts when it is handed over.
  Traffic traffic(int host) const;

  void forget_traffic() { traffic_.clear(); }

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

  struct Card {
    // Without a burst; with one, up to so much earlier as it saves.
    TimePoint out{};  ///< When all that was handed over has left.
    TimePoint in{};   ///< When all that has begun to come in will be there.
    std::uint64_t sent = 0;
  };

  std::size_t on_wire(std::size_t bytes) const;
  void count(int host, std::size_t bytes);
  void cross(int from, int to, double bytes, TimePoint departure, Event arrive);
  Duration draw_jitter();

  const LinkModel model_;
  std::optional<ClusterLinks> links_;
  std::vector<Card> cards_;
  std::mt19937_64 random_;
  TimePoint now_{};
  std::uint64_t made_ = 0;
  std::priority_queue<Item, std::vector<Item>, Later> events_;
  std::map<std::pair<int, int>, Wire> wires_;
  std::vector<Traffic> traffic_;  ///< By host.
};

}  // namespace horo::runtime::sim
