// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/login_limiter.hpp"

#include <utility>

namespace horo::launcher {

struct LoginLimiter::Login {
  LoginLimiter* limiter;
  Server* server;  ///< An element of an unordered_map: its address stays.
  Task start;      ///< Empty: the login is under way.

  Login(LoginLimiter* its_limiter, Server* its_server, Task its_start)
      : limiter(its_limiter), server(its_server), start(std::move(its_start)) {}

  Login(const Login&) = delete;
  Login& operator=(const Login&) = delete;

  ~Login() {
    if (start) return;
    --server->under_way;
    limiter->start_next(*server);
  }
};

LoginLimiter::Slot LoginLimiter::queue(const std::string& server, Task start) {
  auto& entry = servers_[server];
  auto login = std::make_shared<Login>(this, &entry, std::move(start));
  entry.waiting.push_back(login);
  start_next(entry);
  return login;
}

void LoginLimiter::start_next(Server& server) {
  while (server.under_way < kMost && !server.waiting.empty()) {
    const auto login = server.waiting.front().lock();
    server.waiting.pop_front();
    if (!login) continue;
    ++server.under_way;
    std::exchange(login->start, nullptr)();
  }
}

namespace {

class LimitedCarrier final : public Carrier {
 public:
  LimitedCarrier(Loop& loop, LoginLimiter& limiter, std::string server,
                 std::unique_ptr<Carrier> carrier)
      : loop_(loop), limiter_(limiter), server_(std::move(server)), carrier_(std::move(carrier)) {}

  Status open(Handlers handlers) override {
    handlers_ = std::move(handlers);
    // In a later turn of the loop: a carrier that is being destroyed may have made room.
    slot_ = limiter_.queue(server_, [this] {
      loop_.post([this, alive = std::weak_ptr(alive_)] {
        if (!alive.expired()) start();
      });
    });
    return {};
  }

  void hang_up() override {
    if (state_ == State::started) return carrier_->hang_up();
    withdraw();
  }

  void give_up() override {
    if (state_ == State::started) return carrier_->give_up();
    withdraw();
  }

  CarrierStatus status() const override {
    if (state_ == State::started) return carrier_->status();
    return {.step = fmt::format("waiting to log in through {}, {} at a time", server_,
                                LoginLimiter::kMost)};
  }

 private:
  enum class State : std::uint8_t { queued, started, withdrawn };

  void start() {
    if (state_ == State::withdrawn) return;
    state_ = State::started;
    auto opened = carrier_->open({.on_open =
                                      [this](OpenedStream stream) {
                                        stream.login_slot = std::move(slot_);
                                        handlers_.on_open(std::move(stream));
                                      },
                                  .on_gone = [this](Error why) { gone(std::move(why)); }});
    if (!opened) gone(std::move(opened).error());
  }

  void withdraw() {
    if (std::exchange(state_, State::withdrawn) == State::withdrawn) return;
    loop_.post([this, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) gone({Errc::cancelled, "given up"});
    });
  }

  void gone(Error why) {
    slot_.reset();
    if (const auto handler = std::exchange(handlers_.on_gone, nullptr)) handler(std::move(why));
  }

  Loop& loop_;
  LoginLimiter& limiter_;
  const std::string server_;
  const std::unique_ptr<Carrier> carrier_;
  Handlers handlers_;
  LoginLimiter::Slot slot_;  ///< Until the stream is there, which then carries it.
  State state_ = State::queued;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<Carrier> make_limited_carrier(Loop& loop, LoginLimiter& limiter, std::string server,
                                              std::unique_ptr<Carrier> carrier) {
  return std::make_unique<LimitedCarrier>(loop, limiter, std::move(server), std::move(carrier));
}

}  // namespace horo::launcher
