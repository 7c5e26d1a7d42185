// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/agent_relay.hpp"

#include <utility>

#include "launcher/protocol/own_address.hpp"

namespace horo::launcher {

using protocol::Message;
using protocol::MessageStream;

void AgentRelay::open(Send send) {
  send_ = std::move(send);
  for (const auto& [host, route] : routes_) send_(route->reach);
}

void AgentRelay::add(std::shared_ptr<Route> route) {
  const auto host = route->reach.host;
  if (send_) send_(route->reach);
  routes_[host] = std::move(route);
}

void AgentRelay::send(const Message& message) {
  if (send_) send_(message);
}

std::shared_ptr<AgentRelay::Route> AgentRelay::find(std::uint32_t host) const {
  const auto found = routes_.find(host);
  return found == routes_.end() ? nullptr : found->second;
}

void AgentRelay::take(const protocol::Reached& reached) {
  if (const auto route = find(reached.host)) route->on_reached(reached.address);
}

void AgentRelay::take(const protocol::Carry& carry) {
  if (const auto route = find(carry.host)) route->on_frame(carry.frame);
}

void AgentRelay::take(const protocol::Step& step) {
  if (const auto route = find(step.host)) route->step = step.text;
}

void AgentRelay::take(const protocol::Gone& gone) {
  const auto route = find(gone.host);
  if (!route) return;
  routes_.erase(gone.host);
  route->on_gone(gone.error);
  report_if_idle();
}

void AgentRelay::forget(std::uint32_t host) {
  if (routes_.erase(host) > 0) report_if_idle();
}

void AgentRelay::report_if_idle() {
  if (routes_.empty() && idle_) idle_();
}

void AgentRelay::abandon() {
  send_ = nullptr;
  idle_ = nullptr;
  routes_.clear();
}

void AgentRelay::close() {
  const auto routes = std::exchange(routes_, {});
  abandon();
  // Cancelled, because these hosts may be well: only their connection has ended.
  const Error why{Errc::cancelled,
                  fmt::format("host '{}', through which it was reached, was lost", host_)};
  for (const auto& [host, route] : routes) route->on_gone(why);
}

namespace {

/// Shared by a RelayCarrier and the stream that it has given away.
struct SharedLine {
  MessageStream::Handlers handlers;
  bool open = true;
};

/// Wraps each message in a Carry to the relaying agent.
class RelayedStream final : public MessageStream {
 public:
  RelayedStream(std::shared_ptr<AgentRelay> relay, std::uint32_t host,
                std::shared_ptr<SharedLine> line)
      : relay_(std::move(relay)), host_(host), line_(std::move(line)) {}

  ~RelayedStream() override { line_->open = false; }

  RelayedStream(const RelayedStream&) = delete;
  RelayedStream& operator=(const RelayedStream&) = delete;

  Status send(const Message& message) override {
    std::string frame;
    HORO_TRY_STATUS(encode(message, frame));
    relay_->send(protocol::Carry{host_, std::string_view(frame).substr(4)});
    return {};
  }

 private:
  const std::shared_ptr<AgentRelay> relay_;
  const std::uint32_t host_;
  const std::shared_ptr<SharedLine> line_;
};

class RelayCarrier final : public Carrier {
 public:
  RelayCarrier(Loop& loop, std::shared_ptr<AgentRelay> relay, protocol::Reach reach)
      : loop_(loop), relay_(std::move(relay)), route_(std::make_shared<AgentRelay::Route>()) {
    route_->reach = std::move(reach);
  }

  ~RelayCarrier() override { withdraw(); }

  RelayCarrier(const RelayCarrier&) = delete;
  RelayCarrier& operator=(const RelayCarrier&) = delete;

  Status open(Handlers handlers) override {
    handlers_ = std::move(handlers);
    route_->on_reached = [this](const auto& address) { reached(address); };
    route_->on_frame = [this](auto frame) { deliver(frame); };
    route_->on_gone = [this, alive = std::weak_ptr(alive_)](const auto& why) {
      if (!alive.expired()) gone(why);
    };
    relay_->add(route_);
    return {};
  }

  void hang_up() override { leave(false); }

  void give_up() override { leave(true); }

  CarrierStatus status() const override {
    if (!relay_->is_open()) return {.step = fmt::format("waiting for host {}", relay_->host())};
    if (route_->step.empty())
      return {.step = fmt::format("waiting for news of it from host {}", relay_->host())};
    return {.step = fmt::format("{}, from host {}", route_->step, relay_->host())};
  }

 private:
  void reached(const std::string& address) {
    auto own = own_address_towards(address.empty() ? kNoHostAddress : address);
    if (!own) own = own_address_towards(kNoHostAddress);
    handlers_.on_open({.open_messages =
                           [this](MessageStream::Handlers handlers) {
                             return open_messages(std::move(handlers));
                           },
                       .place = AgentPlace::behind_agent,
                       .launcher_address = own ? std::move(*own) : std::string()});
  }

  Result<std::unique_ptr<MessageStream>> open_messages(MessageStream::Handlers handlers) {
    line_ = std::make_shared<SharedLine>(SharedLine{.handlers = std::move(handlers)});
    return std::unique_ptr<MessageStream>(
        std::make_unique<RelayedStream>(relay_, route_->reach.host, line_));
  }

  void deliver(std::string_view frame) {
    const auto line = line_;
    if (!line || !line->open) return;
    auto message = protocol::decode(frame);
    if (message) return line->handlers.on_message(*message);
    line->open = false;
    line->handlers.on_end(Failure(std::move(message).error()));
  }

  /// A relaying agent answers Leave with Gone. Without one, the end is reported from here.
  void leave(bool at_once) {
    if (relay_->is_open()) return relay_->send(protocol::Leave{route_->reach.host, at_once});
    withdraw();
    loop_.post([this, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) gone({Errc::cancelled, "given up"});
    });
  }

  void withdraw() { relay_->forget(route_->reach.host); }

  void gone(const Error& why) {
    const auto line = line_;
    if (line && std::exchange(line->open, false)) line->handlers.on_end({});
    if (const auto handler = std::exchange(handlers_.on_gone, nullptr)) handler(why);
  }

  Loop& loop_;
  const std::shared_ptr<AgentRelay> relay_;
  const std::shared_ptr<AgentRelay::Route> route_;
  Handlers handlers_;
  std::shared_ptr<SharedLine> line_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<Carrier> make_relay_carrier(Loop& loop, std::shared_ptr<AgentRelay> relay,
                                            protocol::Reach reach) {
  return std::make_unique<RelayCarrier>(loop, std::move(relay), std::move(reach));
}

}  // namespace horo::launcher
