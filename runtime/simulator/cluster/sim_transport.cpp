// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator/cluster/sim_transport.hpp"

#include <algorithm>
#include <cstring>

namespace horo::runtime::sim {

namespace {

constexpr std::size_t kHeader = 16;
// Hello, challenge, proof and welcome of the module `tcp`.
constexpr std::size_t kHandshakeThere = 76 + 32;

}  // namespace

/// A message that is awaited.
class SimWire::Receive final : public PendingMessage {
 public:
  Receive(SimWire& wire, int me, const TransportMessage& message)
      : wire_(wire), me_(me), message_(message) {}

  Status wait() override {
    auto& arrivals =
        wire_.ranks_[static_cast<std::size_t>(me_)].from[{message_.peer, message_.worker}];
    if (arrivals.came.empty()) {
      arrivals.waiting.push_back(this);
      fiber_ = Fiber::current();
      Fiber::pause();
    } else {
      take(arrivals.tags.front(), arrivals.came.front());
      arrivals.tags.pop_front();
      arrivals.came.pop_front();
    }
    if (tag_ == message_.tag) return {};
    return fail(Errc::protocol, "rank {} sent message {} where {} was due", message_.peer, tag_,
                message_.tag);
  }

  void take(std::uint64_t tag, const std::string& bytes) {
    tag_ = tag;
    if (message_.at != nullptr) std::memcpy(message_.at, bytes.data(), message_.bytes);
  }

  void wake() { fiber_->resume(); }

 private:
  SimWire& wire_;
  const int me_;
  const TransportMessage message_;
  std::uint64_t tag_ = 0;
  Fiber* fiber_ = nullptr;
};

class SimWire::RankTransport final : public Transport {
 public:
  RankTransport(SimWire& wire, int me) : wire_(wire), me_(me) {}

  Result<std::unique_ptr<PendingMessage>> send(const TransportMessage& message) override {
    class Sent final : public PendingMessage {
     public:
      Status wait() override { return {}; }  // The socket has it.
    };

    wire_.post(me_, message);
    return std::unique_ptr<PendingMessage>(std::make_unique<Sent>());
  }

  Result<std::unique_ptr<PendingMessage>> receive(const TransportMessage& message) override {
    return std::unique_ptr<PendingMessage>(std::make_unique<Receive>(wire_, me_, message));
  }

  void interrupt() override {}

  void hang_up() override {}

 private:
  SimWire& wire_;
  const int me_;
};

std::unique_ptr<Transport> SimWire::transport(int position) {
  return std::make_unique<RankTransport>(*this, position);
}

/// The connection, two round trips and a half after the first message that needs it.
TimePoint SimWire::connected(int a, int b, std::uint32_t worker) {
  const auto [edge, is_new] = edges_.try_emplace({std::minmax(a, b), worker});
  if (!is_new) return edge->second;
  ++ranks_[static_cast<std::size_t>(a)].connections;
  ++ranks_[static_cast<std::size_t>(b)].connections;
  const auto from = hosts_[static_cast<std::size_t>(std::min(a, b))];
  const auto to = hosts_[static_cast<std::size_t>(std::max(a, b))];
  const auto& links = *network_.links();
  const auto latency = from == to ? links.inside.latency
                                  : (links.hosts[static_cast<std::size_t>(from)].latency +
                                     links.hosts[static_cast<std::size_t>(to)].latency) /
                                        2;
  const auto& model = network_.model();
  network_.carry(from, to, kHandshakeThere, network_.now(), [] {});
  return edge->second = network_.now() + 4 * latency + 4 * (model.send_cost + model.receive_cost);
}

void SimWire::post(int from, const TransportMessage& message) {
  ++messages_;
  const int to = message.peer;
  auto& sender = ranks_[static_cast<std::size_t>(from)];
  sender.busy = std::max({sender.busy, network_.now(), connected(from, to, message.worker)}) +
                network_.model().send_cost;
  std::string bytes;
  if (message.at != nullptr) bytes.assign(reinterpret_cast<const char*>(message.at), message.bytes);
  network_.carry(
      hosts_[static_cast<std::size_t>(from)], hosts_[static_cast<std::size_t>(to)],
      message.bytes + kHeader, sender.busy,
      [=, this, worker = message.worker, tag = message.tag, bytes = std::move(bytes)]() mutable {
        deliver(from, to, worker, tag, std::move(bytes));
      });
}

void SimWire::deliver(int from, int to, std::uint32_t worker, std::uint64_t tag,
                      std::string bytes) {
  auto& state = ranks_[static_cast<std::size_t>(to)];
  state.busy = std::max(state.busy, network_.now()) + network_.model().receive_cost;
  network_.at(state.busy, [=, this, bytes = std::move(bytes)]() mutable {
    auto& arrivals = ranks_[static_cast<std::size_t>(to)].from[{from, worker}];
    if (arrivals.waiting.empty()) {
      arrivals.came.push_back(std::move(bytes));
      arrivals.tags.push_back(tag);
      return;
    }
    auto* const receive = arrivals.waiting.front();
    arrivals.waiting.pop_front();
    receive->take(tag, bytes);
    receive->wake();
  });
}

}  // namespace horo::runtime::sim
