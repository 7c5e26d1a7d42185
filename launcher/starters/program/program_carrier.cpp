// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/program/program_carrier.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "launcher/agent/route.hpp"
#include "launcher/process/process_group.hpp"
#include "launcher/process/spawn.hpp"
#include "launcher/process/unique_fd.hpp"
#include "launcher/starters/link/remote_agent.hpp"

namespace horo::launcher {

namespace {

/// In no network (RFC 5737): which of our addresses leads to whatever has no route of its own.
constexpr const char* kElsewhere = "192.0.2.1";

class ProgramCarrier final : public Carrier {
 public:
  ProgramCarrier(Loop& loop, Resolver& resolver, ProgramWay way)
      : loop_(loop), resolver_(resolver), way_(std::move(way)) {}

  Status open(Handlers handlers) override {
    handlers_ = std::move(handlers);
    resolver_.resolve(way_.target, 0, [this, alive = std::weak_ptr(alive_)](const auto& endpoints) {
      if (!alive.expired()) found(endpoints);
    });
    return {};
  }

  void hang_up() override {
    socket_.reset();
    if (child_ == nullptr) gone_soon();
  }

  void give_up() override {
    // Not closed: whoever reads there has to see an end, and nothing else may get the number.
    if (socket_) ::shutdown(socket_.value(), SHUT_RDWR);
    if (child_ == nullptr) return gone_soon();
    child_->signal(SIGKILL);
  }

  std::string step() const override {
    if (child_ == nullptr) return fmt::format("looking up '{}'", way_.target);
    return fmt::format("waiting for {} to connect", way_.arguments.front());
  }

  bool remote() const override { return true; }

  int process() const override { return child_ == nullptr ? 0 : child_->pid(); }

  std::string peer_address() const override { return peer_address_; }

  std::string launcher_address() const override { return launcher_address_; }

 private:
  void found(const Result<std::vector<Endpoint>>& endpoints) {
    if (over_) return;
    // The program may know a way to a name that we do not.
    if (endpoints) peer_address_ = endpoints->front().address;
    auto own = own_address_towards(endpoints ? peer_address_ : std::string(kElsewhere));
    launcher_address_ = own ? std::move(*own) : any_own_address();
    if (auto begun = spawn(); !begun) {
      socket_.reset();
      return gone(std::move(begun).error());
    }
    handlers_.on_open(socket_.value());
  }

  Status spawn() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      return fail_errno(errno, "creating a socket for an agent");
    socket_ = UniqueFd(ends[0]);
    const UniqueFd theirs(ends[1]);
    HORO_TRY(child_, ProcessGroup::spawn(loop_, {.arguments = way_.arguments,
                                                 .environment = own_environment(),
                                                 .descriptors = {{theirs.value(), STDIN_FILENO},
                                                                 {theirs.value(), STDOUT_FILENO}},
                                                 .parent_death_signal = SIGTERM,
                                                 .descriptor_limit = first_descriptor_limit()}));
    child_->on_output([this](Stream, std::string_view bytes) { words_.add(bytes); });
    child_->on_exit([this](ExitStatus status) { gone(describe(status)); });
    return {};
  }

  Error describe(ExitStatus status) const {
    const auto& program = way_.name.empty() ? way_.arguments.front() : way_.name;
    const auto how = status.signalled() ? fmt::format("was killed by signal {}", status.signal())
                                        : fmt::format("ended with exit code {}", status.code());
    return {Errc::unavailable,
            fmt::format("{} to host '{}' {}{}", program, way_.host, how, words_.text())};
  }

  void gone_soon() {
    if (std::exchange(over_, true)) return;
    loop_.post([this, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) gone({Errc::cancelled, "given up"});
    });
  }

  void gone(Error why) {
    over_ = true;
    if (const auto handler = std::exchange(handlers_.on_gone, nullptr)) handler(std::move(why));
  }

  Loop& loop_;
  Resolver& resolver_;
  const ProgramWay way_;
  Handlers handlers_;
  std::string launcher_address_;
  std::string peer_address_;
  UniqueFd socket_;
  std::unique_ptr<ProcessGroup> child_;
  LastWords words_;
  bool over_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<Carrier> make_program_carrier(Loop& loop, Resolver& resolver, ProgramWay way) {
  return std::make_unique<ProgramCarrier>(loop, resolver, std::move(way));
}

}  // namespace horo::launcher
