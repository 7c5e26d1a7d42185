// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/local/local_socket.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

namespace horo::runtime::bootstrap {

namespace {

std::uint64_t fnv1a(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

struct Name {
  sockaddr_un address{};
  socklen_t size = 0;
};

Name abstract(const std::string& name) {
  Name out;
  out.address.sun_family = AF_UNIX;
  std::memcpy(&out.address.sun_path[1], name.data(), name.size());
  out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return out;
}

Result<UniqueFd> make_socket() {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail_errno(errno, "making a socket for the ranks of this host");
  return fd;
}

Result<ucred> credentials(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return fail_errno(errno, "asking who is on the other side");
  return peer;
}

}  // namespace

std::string socket_name(std::string_view meeting_place) {
  return fmt::format("horo.{}.{:016x}{:016x}", geteuid(),
                     fnv1a(meeting_place, 0xcbf29ce484222325ULL),
                     fnv1a(meeting_place, 0x9e3779b97f4a7c15ULL));
}

Result<UniqueFd> listen_at(const std::string& name) {
  HORO_TRY(UniqueFd fd, make_socket());
  const auto at = abstract(name);
  if (bind(fd.value(), reinterpret_cast<const sockaddr*>(&at.address), at.size) != 0) {
    if (errno == EADDRINUSE)
      return fail(Errc::unavailable, "another process is the first rank of this job on this host");
    return fail_errno(errno, "binding the socket for the ranks of this host");
  }
  if (listen(fd.value(), SOMAXCONN) != 0) return fail_errno(errno, "listening for the local ranks");
  return fd;
}

Result<UniqueFd> connect_to(const std::string& name) {
  HORO_TRY(UniqueFd fd, make_socket());
  const auto at = abstract(name);
  if (connect(fd.value(), reinterpret_cast<const sockaddr*>(&at.address), at.size) == 0) return fd;
  if (errno == ECONNREFUSED) return fail(Errc::not_found, "no process listens there");
  if (errno == EAGAIN) return fail(Errc::unavailable, "too many ranks wait");
  return fail_errno(errno, "connecting to the first rank of this host");
}

Status check_peer(int socket) {
  HORO_TRY(const ucred peer, credentials(socket));
  if (peer.uid == geteuid()) return {};
  return fail(
      Errc::permission_denied,
      "process {} of user {} is where the ranks of this job (user {}) meet; start all ranks "
      "as one user, or set another HORO_JOB_ID",
      peer.pid, peer.uid, geteuid());
}

int peer_pid(int socket) {
  auto peer = credentials(socket);
  return peer ? peer->pid : 0;
}

Result<UniqueFd> own_pidfd() {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  if (fd) return fd;
  if (errno == ENOSYS) {
    return fail(Errc::unsupported,
                "this kernel has no pidfd_open (Linux 5.3); start the ranks with 'horo run'");
  }
  return fail_errno(errno, "pidfd_open");
}

Status send_packet(int socket, std::string_view bytes, const std::vector<int>& descriptors) {
  HORO_CHECK(bytes.size() <= kMostPacketBytes && descriptors.size() <= kMostDescriptors);
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const auto size = sizeof(int) * descriptors.size();
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(head), descriptors.data(), size);
  }
  for (;;) {
    if (sendmsg(socket, &message, MSG_NOSIGNAL) >= 0) return {};
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET)
      return fail(Errc::peer_lost, "the rank has closed its connection");
    if (errno == EAGAIN) return fail(Errc::unavailable, "the rank does not read its messages");
    return fail_errno(errno, "sending to a rank of this host");
  }
}

Failure given_up() {
  return fail(Errc::cancelled, "the launcher has given up this meeting of ranks");
}

Result<Packet> receive_packet(int socket) {
  Packet packet;
  packet.bytes.resize(kMostPacketBytes);
  iovec part{.iov_base = packet.bytes.data(), .iov_len = packet.bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return fail(Errc::in_progress, "no message has arrived");
  if (got == 0 || (got < 0 && errno == ECONNRESET))
    return fail(Errc::peer_lost, "the rank has closed its connection");
  if (got < 0) return fail_errno(errno, "receiving from a rank of this host");
  packet.bytes.resize(static_cast<std::size_t>(got));
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const auto count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
      packet.descriptors.emplace_back(fd);
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return fail(Errc::unavailable,
                "no descriptors left for the other ranks of this host; raise 'ulimit -n'");
  }
  if ((message.msg_flags & MSG_TRUNC) != 0)
    return fail(Errc::protocol, "a rank of this host sent too large a packet");
  return packet;
}

}  // namespace horo::runtime::bootstrap
