// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/program/program_carrier.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <optional>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "base/unique_fd.hpp"
#include "launcher/process/spawn.hpp"
#include "launcher/protocol/own_address.hpp"
#include "launcher/starters/link/remote_agent.hpp"

namespace horo::launcher {

namespace {

/// For ssh and srun, and for wrappers that pass SIGTERM on to them, to tell the other side of their
/// end.
constexpr int kGraceMs = 2000;

class ProgramCarrier final : public Carrier {
 public:
  ProgramCarrier(Loop& loop, Resolver& resolver, std::shared_ptr<EndingPrograms> ending,
                 ProgramWay way)
      : loop_(loop), resolver_(resolver), ending_(std::move(ending)), way_(std::move(way)) {}

  ~ProgramCarrier() override {
    if (child_) ending_->add(std::move(*child_));
  }

  ProgramCarrier(const ProgramCarrier&) = delete;
  ProgramCarrier& operator=(const ProgramCarrier&) = delete;

  Status open(Handlers handlers) override {
    handlers_ = std::move(handlers);
    resolver_.resolve(way_.target, 0, [this, alive = std::weak_ptr(alive_)](const auto& endpoints) {
      if (!alive.expired()) found(endpoints);
    });
    return {};
  }

  void hang_up() override {
    socket_.reset();
    if (!child_) gone_soon();
  }

  void give_up() override {
    // Not closed: the program has to read an end, and the descriptor's number must stay taken.
    if (socket_) ::shutdown(socket_.value(), SHUT_RDWR);
    if (!child_) return gone_soon();
    gave_up_ = true;
    if (!child_->release()) return child_->kill_group();
    kill_timer_ = loop_.after(child_->answer_time(), [this] { child_->kill_group(); });
  }

  CarrierStatus status() const override {
    if (!child_) return {.step = fmt::format("looking up '{}'", way_.target)};
    return {.step = fmt::format("waiting for {} to connect", way_.arguments.front()),
            .process = child_->keeper()};
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
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      return fail_errno(errno, "creating a pipe for an agent's errors");
    errors_ = UniqueFd(ends[0]);
    const UniqueFd their_errors(ends[1]);
    fcntl(errors_.value(), F_SETFL, O_NONBLOCK);
    HORO_TRY(auto child, KeptProgram::start({.words = way_.arguments,
                                             .in = theirs.value(),
                                             .out = theirs.value(),
                                             .err = their_errors.value(),
                                             .fresh_with = first_descriptor_limit(),
                                             .grace_ms = kGraceMs})
                             .context(fmt::format("starting '{}'", way_.arguments.front())));
    HORO_TRY(errors_watch_, loop_.watch(errors_.value()));
    HORO_TRY(end_watch_, loop_.watch(child.ended()));
    child_.emplace(std::move(child));
    errors_watch_.on_readable([this] { read_errors(); });
    end_watch_.on_readable([this] { ended(); });
    return {};
  }

  /// Reads what the pipe holds. The program's descendants may hold it open for ever.
  void read_errors() {
    std::array<char, 4096> bytes{};
    ssize_t got = 0;
    while ((got = read(errors_.value(), bytes.data(), bytes.size())) > 0)
      stderr_.add({bytes.data(), static_cast<std::size_t>(got)});
    if (got == 0) errors_watch_.on_readable({});
  }

  void ended() {
    end_watch_.on_readable({});
    kill_timer_ = {};
    const auto status = child_->wait_status();
    read_errors();
    if (status) return gone(describe(ExitStatus(*status)));
    child_->kill_group();  // A process that the program has started may keep the connection open.
    gone(gave_up_ ? describe(ExitStatus(SIGKILL)) : describe(status.error()));
  }

  Error describe(const Error& error) const {
    return {error.code, fmt::format("{} to host '{}': {}{}", way_.arguments.front(), way_.host,
                                    error.message, stderr_.text())};
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
  const std::shared_ptr<EndingPrograms> ending_;
  const ProgramWay way_;
  Handlers handlers_;
  UniqueFd socket_;
  std::optional<KeptProgram> child_;
  UniqueFd errors_;
  Descriptor errors_watch_;  ///< Watches `errors_`.
  Descriptor end_watch_;     ///< Watches for the child's end.
  OutputTail stderr_;
  bool gave_up_ = false;
  Subscription kill_timer_;
  bool over_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<Carrier> make_program_carrier(Loop& loop, Resolver& resolver,
                                              std::shared_ptr<EndingPrograms> ending,
                                              ProgramWay way) {
  return std::make_unique<ProgramCarrier>(loop, resolver, std::move(ending), std::move(way));
}

}  // namespace horo::launcher
