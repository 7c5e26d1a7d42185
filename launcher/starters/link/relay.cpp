// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/relay.hpp"

#include <utility>
#include <vector>

#include "launcher/agent/route.hpp"

namespace horo::launcher {

using protocol::Conduit;
using protocol::Message;

void Relay::open(Send send) {
  send_ = std::move(send);
  for (const auto& [host, way] : ways_) send_(way->reach);
}

void Relay::add(std::shared_ptr<Way> way) {
  const auto host = way->reach.host;
  if (send_) send_(way->reach);
  ways_[host] = std::move(way);
}

void Relay::send(const Message& message) {
  if (send_) send_(message);
}

std::shared_ptr<Relay::Way> Relay::find(std::uint32_t host) const {
  const auto found = ways_.find(host);
  return found == ways_.end() ? nullptr : found->second;
}

void Relay::take(const protocol::Reached& reached) {
  if (const auto way = find(reached.host)) way->on_reached(reached.address);
}

void Relay::take(const protocol::Carry& carry) {
  if (const auto way = find(carry.host)) way->on_frame(carry.frame);
}

void Relay::take(const protocol::Step& step) {
  if (const auto way = find(step.host)) way->step = step.text;
}

void Relay::take(const protocol::Gone& gone) {
  const auto way = find(gone.host);
  if (!way) return;
  ways_.erase(gone.host);
  way->on_gone(gone.error);
  settle();
}

void Relay::forget(std::uint32_t host) {
  if (ways_.erase(host) > 0) settle();
}

void Relay::settle() {
  if (ways_.empty() && idle_) idle_();
}

void Relay::abandon() {
  send_ = nullptr;
  idle_ = nullptr;
  ways_.clear();
}

void Relay::close() {
  const auto ways = std::exchange(ways_, {});
  abandon();
  // Nothing else is wrong with them.
  const Error why{Errc::cancelled,
                  fmt::format("host '{}', through which it was reached, is gone", host_)};
  for (const auto& [host, way] : ways) way->on_gone(why);
}

namespace {

/// In no network (RFC 5737): which of our addresses leads to whatever has no route of its own.
constexpr const char* kElsewhere = "192.0.2.1";

/// What passes between RelayCarrier and the conduit that it has given away.
struct Line {
  Conduit::Handlers handlers;
  bool open = true;
};

class RelayConduit final : public Conduit {
 public:
  RelayConduit(std::shared_ptr<Relay> relay, std::uint32_t host, std::shared_ptr<Line> line)
      : relay_(std::move(relay)), host_(host), line_(std::move(line)) {}

  ~RelayConduit() override { line_->open = false; }

  RelayConduit(const RelayConduit&) = delete;
  RelayConduit& operator=(const RelayConduit&) = delete;

  Status send(const Message& message) override {
    std::string frame;
    HORO_TRY_STATUS(encode(message, frame));
    relay_->send(protocol::Carry{host_, std::string_view(frame).substr(4)});
    return {};
  }

 private:
  const std::shared_ptr<Relay> relay_;
  const std::uint32_t host_;
  const std::shared_ptr<Line> line_;
};

class RelayCarrier final : public Carrier {
 public:
  RelayCarrier(Loop& loop, std::shared_ptr<Relay> relay, protocol::Reach reach)
      : loop_(loop), relay_(std::move(relay)), way_(std::make_shared<Relay::Way>()) {
    way_->reach = std::move(reach);
  }

  ~RelayCarrier() override { withdraw(); }

  RelayCarrier(const RelayCarrier&) = delete;
  RelayCarrier& operator=(const RelayCarrier&) = delete;

  Status open(Handlers handlers) override {
    handlers_ = std::move(handlers);
    way_->on_reached = [this](const auto& address) { reached(address); };
    way_->on_frame = [this](auto frame) { deliver(frame); };
    way_->on_gone = [this, alive = std::weak_ptr(alive_)](const auto& why) {
      if (!alive.expired()) gone(why);
    };
    relay_->add(way_);
    return {};
  }

  void hang_up() override { leave(false); }

  void give_up() override { leave(true); }

  std::string step() const override {
    if (!relay_->is_open()) return fmt::format("waiting for host {}", relay_->host());
    if (way_->step.empty())
      return fmt::format("waiting for word of it from host {}", relay_->host());
    return fmt::format("{}, from host {}", way_->step, relay_->host());
  }

  bool remote() const override { return true; }

  bool direct() const override { return false; }

  std::string launcher_address() const override { return launcher_address_; }

  Result<std::unique_ptr<Conduit>> converse(Loop&, int, Conduit::Handlers handlers) override {
    line_ = std::make_shared<Line>(Line{.handlers = std::move(handlers)});
    return std::unique_ptr<Conduit>(
        std::make_unique<RelayConduit>(relay_, way_->reach.host, line_));
  }

 private:
  void reached(const std::string& address) {
    auto own = own_address_towards(address.empty() ? kElsewhere : address);
    if (!own) own = own_address_towards(kElsewhere);
    if (own) launcher_address_ = std::move(*own);
    handlers_.on_open(-1);
  }

  void deliver(std::string_view frame) {
    const auto line = line_;
    if (!line || !line->open) return;
    auto message = protocol::decode(frame);
    if (message) return line->handlers.on_message(*message);
    line->open = false;
    line->handlers.on_end(Failure(std::move(message).error()));
  }

  /// Without the other agent's word: it is not there to give one.
  void leave(bool at_once) {
    if (relay_->is_open()) return relay_->send(protocol::Leave{way_->reach.host, at_once});
    withdraw();
    loop_.post([this, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) gone({Errc::cancelled, "given up"});
    });
  }

  void withdraw() { relay_->forget(way_->reach.host); }

  void gone(const Error& why) {
    const auto line = line_;
    if (line && std::exchange(line->open, false)) line->handlers.on_end({});
    if (const auto handler = std::exchange(handlers_.on_gone, nullptr)) handler(why);
  }

  Loop& loop_;
  const std::shared_ptr<Relay> relay_;
  const std::shared_ptr<Relay::Way> way_;
  Handlers handlers_;
  std::shared_ptr<Line> line_;
  std::string launcher_address_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<Carrier> make_relay_carrier(Loop& loop, std::shared_ptr<Relay> relay,
                                            protocol::Reach reach) {
  return std::make_unique<RelayCarrier>(loop, std::move(relay), std::move(reach));
}

}  // namespace horo::launcher
