// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/program/program_carrier.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "base/unique_fd.hpp"
#include "launcher/process/process_group.hpp"
#include "launcher/process/spawn.hpp"
#include "launcher/protocol/own_address.hpp"
#include "launcher/starters/link/remote_agent.hpp"

namespace horo::launcher {

namespace {

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
    // Not closed: the program has to read an end, and the descriptor's number must stay taken.
    if (socket_) ::shutdown(socket_.value(), SHUT_RDWR);
    if (child_ == nullptr) return gone_soon();
    child_->signal(SIGKILL);
  }

  CarrierStatus status() const override {
    if (child_ == nullptr) return {.step = fmt::format("looking up '{}'", way_.target)};
    return {.step = fmt::format("waiting for {} to connect", way_.arguments.front()),
            .process = child_->pid()};
  }

 private:
  void found(const Result<std::vector<Endpoint>>& endpoints) {
    if (over_) return;
    // The program may have a route to a name that the system's resolver does not know.
    const auto peer = endpoints ? endpoints->front().address : std::string();
    auto own = own_address_towards(endpoints ? peer : std::string(kNoHostAddress));
    if (auto spawned = spawn(); !spawned) {
      socket_.reset();
      return gone(std::move(spawned).error());
    }
    handlers_.on_open({.descriptor = socket_.value(),
                       .place = AgentPlace::other_host,
                       .peer_address = peer,
                       .launcher_address = own ? std::move(*own) : any_own_address()});
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
    child_->on_output([this](Stream, std::string_view bytes) { stderr_.add(bytes); });
    child_->on_exit([this](ExitStatus status) { gone(describe(status)); });
    return {};
  }

  Error describe(ExitStatus status) const {
    const auto& program = way_.name.empty() ? way_.arguments.front() : way_.name;
    const auto how = status.signalled() ? fmt::format("was killed by signal {}", status.signal())
                                        : fmt::format("ended with exit code {}", status.code());
    return {Errc::unavailable,
            fmt::format("{} to host '{}' {}{}", program, way_.host, how, stderr_.text())};
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
  UniqueFd socket_;
  std::unique_ptr<ProcessGroup> child_;
  OutputTail stderr_;
  bool over_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<Carrier> make_program_carrier(Loop& loop, Resolver& resolver, ProgramWay way) {
  return std::make_unique<ProgramCarrier>(loop, resolver, std::move(way));
}

}  // namespace horo::launcher
