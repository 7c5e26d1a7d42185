// SPDX-License-Identifier: Apache-2.0
#include "apps/common/running_job/launcher_link.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/loop/abstract_address.hpp"

namespace horo::apps {

namespace protocol = launcher::protocol;

namespace {

constexpr Duration kGreetingTimeout = std::chrono::seconds(2);

std::string user_name(uid_t user) {
  const auto* entry = getpwuid(user);
  return entry != nullptr ? entry->pw_name : std::to_string(user);
}

}  // namespace

Result<std::unique_ptr<LauncherLink>> LauncherLink::open(const RunningLauncher& launcher) {
  if (launcher.user != geteuid() && geteuid() != 0) {
    return fail(Errc::permission_denied,
                "job {} belongs to user {}; only that user and root can look at it or change it",
                launcher.job, user_name(launcher.user));
  }
  std::unique_ptr<LauncherLink> link(new LauncherLink(launcher));
  HORO_TRY_STATUS(link->connect());
  HORO_TRY_STATUS(link->greet());
  return link;
}

Status LauncherLink::connect() {
  const auto who = fmt::format("the launcher of job {}, process {}", launcher_.job, launcher_.pid);
  HORO_TRY(const auto address, AbstractAddress::of(launcher_.socket));
  socket_ = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) return fail_errno(errno, "a socket");
  if (::connect(socket_.value(), address.get(), address.size) != 0) {
    if (errno == EAGAIN) return fail(Errc::unavailable, "{}, does not answer; is it stopped?", who);
    return fail_errno(errno, who);
  }
  ucred peer{};
  socklen_t room = sizeof peer;
  if (getsockopt(socket_.value(), SOL_SOCKET, SO_PEERCRED, &peer, &room) != 0 ||
      peer.uid != launcher_.user) {
    return fail(Errc::permission_denied, "another user's process claims to be {}", who);
  }
  return {};
}

Status LauncherLink::greet() {
  HORO_TRY_STATUS(protocol::encode(protocol::Hello::ours(), outbox_));
  pump(SteadyClock::instance().now() + kGreetingTimeout, [this] { return !roster_.job.empty(); },
       {});
  if (!status_) return status_;
  if (!roster_.job.empty()) return {};
  const auto who = fmt::format("the launcher of job {}, process {},", launcher_.job, launcher_.pid);
  if (!ended()) {
    return fail(Errc::unavailable, "{} does not answer; is it stopped?", who);
  }
  return fail(Errc::unavailable,
              "{} has closed the connection: it is ending, or too many viewers look at its job",
              who);
}

void LauncherLink::ask(std::uint32_t at, const protocol::Message& question) {
  std::string frame;
  if (!protocol::encode(question, frame)) return;
  static_cast<void>(protocol::encode(
      protocol::Carry{.host = at, .frame = std::string_view(frame).substr(4)}, outbox_));
}

void LauncherLink::ask_members() {
  members_.reset();
  static_cast<void>(protocol::encode(launcher::AskMembers{}, outbox_));
}

void LauncherLink::send_wish(const launcher::Resize& wish) {
  resized_.reset();
  static_cast<void>(protocol::encode(wish, outbox_));
}

void LauncherLink::pump(TimePoint until, const std::function<bool()>& done, const Take& take) {
  if (!ended()) read_some(take);  // Also notices a closed connection when no answer is expected.
  while (!ended() && !done() && wait(until)) read_some(take);
}

/// Returns false when `until` has come.
bool LauncherLink::wait(TimePoint until) {
  write_some();
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock::instance().now()).count();
  if (left <= 0) return false;
  const auto events = static_cast<short>(outbox_.empty() ? POLLIN : POLLIN | POLLOUT);
  pollfd socket{.fd = socket_.value(), .events = events, .revents = 0};
  poll(&socket, 1, static_cast<int>(left));
  return true;
}

void LauncherLink::write_some() {
  while (!outbox_.empty()) {
    const auto put = send(socket_.value(), outbox_.data(), outbox_.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0)
      return;  // The buffer is full, or the connection is closed; read_some() will tell.
    outbox_.erase(0, static_cast<std::size_t>(put));
  }
}

void LauncherLink::read_some(const Take& take) {
  std::array<char, 65536> bytes{};
  const auto got = read(socket_.value(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return socket_.reset();
  reader_.feed({bytes.data(), static_cast<std::size_t>(got)});
  for (;;) {
    const auto message = reader_.next();
    if (message && !*message) return;
    status_ = message ? take_message(**message, take) : Status(Failure(message.error()));
    if (!status_) return socket_.reset();
  }
}

Status LauncherLink::take_message(const protocol::Message& message, const Take& take) {
  if (const auto* hello = std::get_if<protocol::Hello>(&message); !greeted_) {
    if (hello == nullptr) return fail(Errc::protocol, "the launcher did not begin with a hello");
    greeted_ = true;
    return protocol::check_hello(*hello, fmt::format("the launcher of job {}", launcher_.job));
  }
  if (const auto* roster = std::get_if<protocol::Roster>(&message)) {
    roster_ = *roster;
  } else if (const auto* members = std::get_if<launcher::Members>(&message)) {
    members_ = *members;
  } else if (const auto* resized = std::get_if<launcher::Resized>(&message)) {
    resized_ = *resized;
  } else if (const auto* carry = std::get_if<protocol::Carry>(&message)) {
    HORO_TRY(const auto answer, protocol::decode(carry->frame));
    if (take && carry->host < roster_.agents.size()) take(carry->host, answer);
  } else if (const auto* gone = std::get_if<protocol::Gone>(&message)) {
    if (take && gone->host < roster_.agents.size()) take(gone->host, message);
  }
  return {};
}

}  // namespace horo::apps
