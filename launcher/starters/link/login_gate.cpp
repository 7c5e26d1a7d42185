// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/login_gate.hpp"

#include <utility>

namespace horo::launcher {

struct LoginGate::Visitor {
  LoginGate* gate;
  Door* door;  ///< Doors stay where they are, and as long as the gate.
  Task enter;  ///< Empty: it is in.

  Visitor(LoginGate* its_gate, Door* its_door, Task its_enter)
      : gate(its_gate), door(its_door), enter(std::move(its_enter)) {}

  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;

  ~Visitor() {
    if (enter) return;
    --door->inside;
    gate->let_in(*door);
  }
};

LoginGate::Ticket LoginGate::queue(const std::string& door, Task enter) {
  auto& place = doors_[door];
  auto visitor = std::make_shared<Visitor>(this, &place, std::move(enter));
  place.waiting.push_back(visitor);
  let_in(place);
  return visitor;
}

void LoginGate::let_in(Door& door) {
  while (door.inside < kMost && !door.waiting.empty()) {
    const auto visitor = door.waiting.front().lock();
    door.waiting.pop_front();
    if (!visitor) continue;
    ++door.inside;
    std::exchange(visitor->enter, nullptr)();
  }
}

namespace {

class GatedCarrier final : public Carrier {
 public:
  GatedCarrier(Loop& loop, LoginGate& gate, std::string door, std::unique_ptr<Carrier> carrier)
      : loop_(loop), gate_(gate), door_(std::move(door)), carrier_(std::move(carrier)) {}

  Status open(Handlers handlers) override {
    handlers_ = std::move(handlers);
    // A turn later: whoever makes room may be in the middle of going.
    ticket_ = gate_.queue(door_, [this] {
      loop_.post([this, alive = std::weak_ptr(alive_)] {
        if (!alive.expired()) enter();
      });
    });
    return {};
  }

  void hang_up() override {
    if (entered_) return carrier_->hang_up();
    give_way();
  }

  void give_up() override {
    if (entered_) return carrier_->give_up();
    give_way();
  }

  void bury(const std::string& control_group) override { carrier_->bury(control_group); }

  std::string step() const override {
    return entered_
               ? carrier_->step()
               : fmt::format("waiting to log in through {}, {} at a time", door_, LoginGate::kMost);
  }

  bool remote() const override { return carrier_->remote(); }

  bool direct() const override { return carrier_->direct(); }

  Result<std::unique_ptr<protocol::Conduit>> converse(
      Loop& loop, int descriptor, protocol::Conduit::Handlers handlers) override {
    return carrier_->converse(loop, descriptor, std::move(handlers));
  }

  void greeted() override { ticket_.reset(); }

  bool connected() const override { return !entered_ || carrier_->connected(); }

  int process() const override { return carrier_->process(); }

  std::string peer_address() const override { return carrier_->peer_address(); }

  std::string launcher_address() const override { return carrier_->launcher_address(); }

 private:
  void enter() {
    if (over_) return;
    entered_ = true;
    auto opened = carrier_->open({.on_open = std::exchange(handlers_.on_open, nullptr),
                                  .on_gone = [this](Error why) { gone(std::move(why)); }});
    if (!opened) gone(std::move(opened).error());
  }

  void give_way() {
    if (std::exchange(over_, true)) return;
    loop_.post([this, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) gone({Errc::cancelled, "given up"});
    });
  }

  void gone(Error why) {
    ticket_.reset();
    if (const auto handler = std::exchange(handlers_.on_gone, nullptr)) handler(std::move(why));
  }

  Loop& loop_;
  LoginGate& gate_;
  const std::string door_;
  const std::unique_ptr<Carrier> carrier_;
  Handlers handlers_;
  LoginGate::Ticket ticket_;
  bool entered_ = false;
  bool over_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<Carrier> make_gated_carrier(Loop& loop, LoginGate& gate, std::string door,
                                            std::unique_ptr<Carrier> carrier) {
  return std::make_unique<GatedCarrier>(loop, gate, std::move(door), std::move(carrier));
}

}  // namespace horo::launcher
