// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/ssh/ssh_carrier.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <netdb.h>
#include <optional>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "launcher/starters/link/remote_agent.hpp"
#include "launcher/starters/ssh/connector.hpp"
#include "launcher/starters/ssh/ssh_session.hpp"

namespace horo::launcher {

namespace {

constexpr std::size_t kChunk = 32768;

std::array<char, kChunk>& chunk() {
  static thread_local std::array<char, kChunk> buffer;
  return buffer;
}

std::string own_address_of(int descriptor) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  std::array<char, NI_MAXHOST> text{};
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &size) != 0 ||
      getnameinfo(reinterpret_cast<const sockaddr*>(&own), size, text.data(), text.size(), nullptr,
                  0, NI_NUMERICHOST) != 0)
    return {};
  return text.data();
}

/// Bytes that wait until a descriptor takes them. Thread: owner.
struct Backlog {
  std::string bytes;

  /// Writes what can be written; false when no process reads any more.
  bool flush(int descriptor) {
    while (!bytes.empty()) {
      const auto put = ::write(descriptor, bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return errno == EAGAIN;
      bytes.erase(0, static_cast<std::size_t>(put));
    }
    return true;
  }
};

/// The launcher has one end of a socket pair. This carrier moves the bytes between the other end
/// and the ssh channel.
class SshCarrier final : public Carrier {
 public:
  SshCarrier(Loop& loop, Resolver& resolver, const Libssh& library, SshRoute route,
             std::string command_line)
      : loop_(loop),
        resolver_(resolver),
        library_(library),
        route_(std::move(route)),
        command_line_(std::move(command_line)) {}

  ~SshCarrier() override { kill_other_program(); }

  SshCarrier(const SshCarrier&) = delete;
  SshCarrier& operator=(const SshCarrier&) = delete;

  Status open(Handlers handlers) override {
    handlers_ = std::move(handlers);
    resolver_.resolve(route_.name, route_.port,
                      [this, alive = std::weak_ptr(alive_)](const auto& endpoints) {
                        if (!alive.expired()) found(endpoints);
                      });
    return {};
  }

  /// The agent ends its ranks. What it has sent is still delivered.
  void hang_up() override {
    theirs_.reset();
    if (!running_) end({Errc::cancelled, "given up"});
  }

  void give_up() override {
    kill_other_program();
    // Not closed: its reader has to see an end, and the descriptor's number must stay taken.
    if (theirs_) ::shutdown(theirs_.value(), SHUT_RDWR);
    end({Errc::cancelled, "given up"});
  }

  CarrierStatus status() const override {
    if (session_) return {.step = session_->step()};
    if (connector_) {
      return {.step = fmt::format("connecting to {}:{}", connector_->address(), route_.port),
              .connected = false};
    }
    return {.step = fmt::format("looking up '{}'", route_.name), .connected = false};
  }

 private:
  /// A program in place of the agent, such as one in a startup file of the login shell, may read
  /// nothing and outlive the connection. An agent is not killed, because it ends its ranks first.
  void kill_other_program() {
    if (session_ && running_ && !recognizer_.is_agent()) session_->kill_command();
  }

  Error trouble(Error error) const {
    return std::move(error).context(fmt::format(
        "ssh to host '{}'{}", route_.host, address_.empty() ? "" : fmt::format(" ({})", address_)));
  }

  void found(const Result<std::vector<Endpoint>>& endpoints) {
    if (over_) return;
    if (!endpoints) return end(trouble(endpoints.error()));
    connector_.emplace(loop_, *endpoints,
                       [this](Result<UniqueFd> socket) { take_over(std::move(socket)); });
  }

  void take_over(Result<UniqueFd> socket) {
    if (over_) return;
    if (!socket) {
      return end(trouble(
          std::move(socket).error().context(fmt::format("connecting to port {}", route_.port))));
    }
    address_ = fmt::format("{}:{}", connector_->address(), route_.port);
    socket_ = socket->value();
    auto watch = loop_.watch(socket_);
    if (!watch) return end(trouble(std::move(watch).error()));
    watch_ = std::move(*watch);
    session_ = std::make_unique<SshSession>(library_, route_, address_);
    if (auto begun = session_->begin(std::move(*socket), command_line_); !begun)
      return end(trouble(std::move(begun).error()));
    watch_.on_readable([this] { advance(); });
    advance();
  }

  void advance() {
    if (over_) return;
    if (running_) return pump();
    const auto progress = session_->advance();
    if (!progress) return end(trouble(progress.error()));
    if (*progress == SshSession::Progress::waiting) return wait_for_room();
    if (auto joined = join(); !joined) return end(trouble(std::move(joined).error()));
    running_ = true;
    handlers_.on_open({.descriptor = theirs_.value(),
                       .place = AgentPlace::other_host,
                       .peer_address = connector_->address(),
                       .launcher_address = own_address_of(socket_)});
    pump();
  }

  Status join() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
      return fail_errno(errno, "creating a socket for an agent");
    theirs_ = UniqueFd(ends[0]);
    ours_ = UniqueFd(ends[1]);
    HORO_TRY(ours_watch_, loop_.watch(ours_.value()));
    ours_watch_.on_readable([this] { pump(); });
    return {};
  }

  void pump() {
    if (over_) return;
    if (auto moved = move_in(); !moved) return close_down(trouble(std::move(moved).error()));
    if (auto moved = move_out(); !moved) return close_down(trouble(std::move(moved).error()));
    if (session_->ended() && backlog_.bytes.empty()) return close_down(describe_end());
    wait_for_room();
  }

  /// From the agent to the launcher, as fast as that takes it.
  Status move_in() {
    for (;;) {
      HORO_TRY(const auto words,
               session_->read(SshSession::Source::errors, chunk().data(), kChunk));
      if (words.empty()) break;
      stderr_.add(words);
    }
    for (;;) {
      if (!backlog_.flush(ours_.value())) backlog_.bytes.clear();
      if (!backlog_.bytes.empty()) return {};
      // Reads until nothing is left: after the agent's end no event may come any more.
      HORO_TRY(const auto bytes,
               session_->read(SshSession::Source::output, chunk().data(), kChunk));
      if (bytes.empty()) return {};
      recognizer_.add(bytes);
      backlog_.bytes = bytes;
    }
  }

  /// From the launcher to the agent, as much as the channel's window has room for.
  Status move_out() {
    while (!input_ended_) {
      const auto room = std::min(session_->room(), kChunk);
      ours_watch_.on_readable(room == 0 ? Task() : Task([this] { pump(); }));
      if (room == 0) return {};
      const auto got = ::read(ours_.value(), chunk().data(), room);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return {};
      if (got <= 0) {
        session_->end_input();
        end_input();
        return {};
      }
      HORO_TRY(const bool taken, session_->write({chunk().data(), static_cast<std::size_t>(got)}));
      if (!taken) end_input();
    }
    return {};
  }

  void end_input() {
    input_ended_ = true;
    ours_watch_.on_readable({});
  }

  void wait_for_room() {
    watch_.on_writable(session_->has_unsent() ? Task([this] { advance(); }) : Task());
    if (running_) {
      ours_watch_.on_writable(backlog_.bytes.empty() ? Task() : Task([this] { pump(); }));
    }
  }

  Error describe_end() const {
    const auto code = session_->exit_code();
    const auto how = code ? fmt::format("ended with exit code {}", *code)
                          : std::string("was killed, or its connection was");
    return trouble({Errc::unavailable, fmt::format("horo-agent {}{}", how, stderr_.text())});
  }

  /// The launcher reads what is left in the socket, and then its end.
  void close_down(Error why) {
    ours_watch_.reset();
    ours_.reset();
    end(std::move(why));
  }

  /// Reports the end in a later turn of the loop, not inside a call of the launcher.
  void end(Error why) {
    if (std::exchange(over_, true)) return;
    watch_.reset();
    loop_.post([this, alive = std::weak_ptr(alive_), why = std::move(why)] {
      if (alive.expired()) return;
      ours_watch_.reset();
      ours_.reset();
      connector_.reset();
      session_.reset();
      if (const auto handler = std::exchange(handlers_.on_gone, nullptr)) handler(why);
    });
  }

  Loop& loop_;
  Resolver& resolver_;
  const Libssh& library_;
  const SshRoute route_;
  const std::string command_line_;
  Handlers handlers_;
  std::string address_;
  std::optional<Connector> connector_;
  int socket_ = -1;  ///< Owned by the session.
  std::unique_ptr<SshSession> session_;
  Descriptor watch_;  ///< Watches the socket; destroyed before the session closes it.
  UniqueFd theirs_;
  UniqueFd ours_;
  Descriptor ours_watch_;
  Backlog backlog_;
  OutputTail stderr_;
  AgentRecognizer recognizer_;
  bool running_ = false;
  bool input_ended_ = false;
  bool over_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

Result<std::unique_ptr<Carrier>> make_ssh_carrier(Loop& loop, Resolver& resolver, SshRoute route,
                                                  std::string command_line) {
  HORO_TRY(const auto* library, load_libssh());
  return std::unique_ptr<Carrier>(std::make_unique<SshCarrier>(
      loop, resolver, *library, std::move(route), std::move(command_line)));
}

}  // namespace horo::launcher
