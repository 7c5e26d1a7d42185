// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/fallback.hpp"

#include <utility>

namespace horo::launcher {

namespace {

class FallbackCarrier final : public Carrier {
 public:
  FallbackCarrier(Loop& loop, std::vector<CarrierFactory> ways)
      : loop_(loop), ways_(std::move(ways)) {}

  Status open(Handlers handlers) override {
    handlers_ = std::move(handlers);
    return try_next();
  }

  void hang_up() override {
    given_up_ = true;
    current_->hang_up();
  }

  void give_up() override {
    given_up_ = true;
    current_->give_up();
  }

  void bury(const std::string& control_group) override { current_->bury(control_group); }

  std::string step() const override { return current_->step(); }

  bool remote() const override { return current_->remote(); }

  bool direct() const override { return current_->direct(); }

  Result<std::unique_ptr<protocol::Conduit>> converse(
      Loop& loop, int descriptor, protocol::Conduit::Handlers handlers) override {
    return current_->converse(loop, descriptor, std::move(handlers));
  }

  void greeted() override { current_->greeted(); }

  bool connected() const override { return current_->connected(); }

  int process() const override { return current_->process(); }

  std::string peer_address() const override { return current_->peer_address(); }

  std::string launcher_address() const override { return current_->launcher_address(); }

 private:
  Status try_next() {
    HORO_TRY(current_, ways_[next_++]());
    return current_->open({.on_open =
                               [this](int descriptor) {
                                 opened_ = true;
                                 handlers_.on_open(descriptor);
                               },
                           .on_gone = [this](Error why) { gone(std::move(why)); }});
  }

  void gone(Error why) {
    if (opened_ || given_up_ || next_ == ways_.size()) return tell(std::move(why));
    // Not from within the carrier that has failed: it goes with this.
    loop_.post([this, alive = std::weak_ptr(alive_)] {
      if (alive.expired()) return;
      if (given_up_) return tell({Errc::cancelled, "given up"});
      if (auto tried = try_next(); !tried) gone(std::move(tried).error());
    });
  }

  void tell(Error why) {
    if (const auto handler = std::exchange(handlers_.on_gone, nullptr)) handler(std::move(why));
  }

  Loop& loop_;
  const std::vector<CarrierFactory> ways_;
  Handlers handlers_;
  std::size_t next_ = 0;
  std::unique_ptr<Carrier> current_;
  bool opened_ = false;
  bool given_up_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<Carrier> make_fallback_carrier(Loop& loop, std::vector<CarrierFactory> ways) {
  return std::make_unique<FallbackCarrier>(loop, std::move(ways));
}

}  // namespace horo::launcher
