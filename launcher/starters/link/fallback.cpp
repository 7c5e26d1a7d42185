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
    state_ = State::given_up;
    current_->hang_up();
  }

  void give_up() override {
    state_ = State::given_up;
    current_->give_up();
  }

  CarrierStatus status() const override { return current_->status(); }

 private:
  enum class State : std::uint8_t { trying, opened, given_up };

  Status try_next() {
    HORO_TRY(current_, ways_[next_++]());
    return current_->open({.on_open =
                               [this](OpenedStream stream) {
                                 state_ = State::opened;
                                 handlers_.on_open(std::move(stream));
                               },
                           .on_gone = [this](Error why) { gone(std::move(why)); }});
  }

  void gone(Error why) {
    if (state_ != State::trying || next_ == ways_.size()) return tell(std::move(why));
    // In a later turn of the loop: the next attempt destroys the carrier that calls this.
    loop_.post([this, alive = std::weak_ptr(alive_)] {
      if (alive.expired()) return;
      if (state_ == State::given_up) return tell({Errc::cancelled, "given up"});
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
  State state_ = State::trying;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<Carrier> make_fallback_carrier(Loop& loop, std::vector<CarrierFactory> ways) {
  return std::make_unique<FallbackCarrier>(loop, std::move(ways));
}

}  // namespace horo::launcher
