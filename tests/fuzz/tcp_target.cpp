// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>

#include "base/codec/bytes.hpp"
#include "runtime/backends/tcp/tcp_contacts.hpp"
#include "runtime/backends/tcp/tcp_handshake.hpp"
#include "runtime/backends/tcp/tcp_wire.hpp"

namespace horo::fuzz {

namespace {

using namespace runtime;  // NOLINT(google-build-using-namespace): what is fuzzed

const kv::Secret kKnown{1, 2, 3};

/// A stranger's bytes at a rank's port. It must not get in, and be answered with a challenge at
/// most.
std::string run_stranger(std::string_view bytes) {
  auto handshake = TcpHandshake::accepting(kKnown, 5, kv::Nonce{});
  std::size_t answered = 0;
  while (!bytes.empty()) {
    const auto room = handshake.room();
    if (room == 0) return "the handshake takes nothing more without an end";
    const auto piece = bytes.substr(0, room);
    bytes.remove_prefix(piece.size());
    const auto status = handshake.feed(as_bytes(piece));
    answered += handshake.output().size();
    handshake.sent(handshake.output().size());
    if (handshake.open()) return "a stranger got in";
    if (answered > 32) return "a stranger was answered more than a challenge";
    if (!status) break;
  }
  return "";
}

/// A table that is read must be written and read as the same table.
std::string run_contacts(std::string_view bytes) {
  const auto contacts = decode_contacts(bytes);
  if (!contacts) return "";
  const auto again = decode_contacts(encode_contacts(*contacts));
  return again && *again == *contacts ? "" : "a table reads differently after it was written";
}

/// The two ends of a connection, which do not block.
struct Ends {
  Ends() {
    std::array<int, 2> made{-1, -1};
    HORO_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, made.data()) ==
               0);
    low = UniqueFd(made[0]);
    high = UniqueFd(made[1]);
  }

  UniqueFd low;
  UniqueFd high;
};

/// Null: this machine has no libcrypto.
std::unique_ptr<TcpWire> encrypted_end(kv::Direction outgoing) {
  auto ciphers = kv::CipherPair::make(kKnown, {.client_version = 1}, outgoing);
  return ciphers ? encrypted_wire(std::move(*ciphers)) : nullptr;
}

/// Memory for a message, with bytes behind it that nobody may change.
class Memory {
 public:
  Memory(std::uint64_t tag, std::size_t bytes, char fill)
      : bytes_(bytes),
        memory_(bytes + kBehind, static_cast<std::byte>(fill)),
        transfer({.peer = 0, .tag = tag, .at = memory_.data(), .bytes = bytes}) {
    std::fill(memory_.begin() + static_cast<std::ptrdiff_t>(bytes), memory_.end(), kMark);
  }

  bool is_whole() const {
    return std::all_of(memory_.begin() + static_cast<std::ptrdiff_t>(bytes_), memory_.end(),
                       [](std::byte b) { return b == kMark; }) &&
           transfer.moved <= transfer.size();
  }

  bool holds(char fill) const {
    return std::all_of(memory_.begin(), memory_.begin() + static_cast<std::ptrdiff_t>(bytes_),
                       [fill](std::byte b) { return b == static_cast<std::byte>(fill); });
  }

 private:
  static constexpr std::size_t kBehind = 64;
  static constexpr std::byte kMark{0xee};

  const std::size_t bytes_;
  std::vector<std::byte> memory_;

 public:
  TcpTransfer transfer;
};

struct Awaited {
  std::uint64_t tag;
  std::size_t bytes;
  char fill;
};

constexpr std::array kAwaited = {Awaited{7, 100, 'a'}, Awaited{8, 0, 'b'}, Awaited{9, 8, 'c'}};

/// The bytes of these messages on a connection.
std::string stream_of(TcpWire& wire) {
  const Ends ends;
  for (const auto& awaited : kAwaited) {
    Memory memory(awaited.tag, awaited.bytes, awaited.fill);
    while (!memory.transfer.done())
      HORO_CHECK(wire.write(ends.low.value(), memory.transfer).error == 0);
  }
  std::string stream(4096, '\0');
  const auto n = read(ends.high.value(), stream.data(), stream.size());
  stream.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return stream;
}

/// Reads as a channel does, until the message is done, nothing is left, or an error.
std::string read_message(TcpWire& wire, int socket, Memory& memory, bool& ended) {
  auto& transfer = memory.transfer;
  while (!transfer.done()) {
    const bool header_due = transfer.moved < kTcpHeaderBytes;
    const auto move = wire.read(socket, transfer);
    if (!memory.is_whole()) return "more was written than the message";
    ended = move.error != 0 && move.error != EAGAIN;
    if (ended || move.bytes <= 0) return "";
    if (header_due && transfer.moved >= kTcpHeaderBytes && wire.header() != transfer.header) {
      ended = true;
      return "";
    }
  }
  return "";
}

/// A connection of a rank on which these bytes come, in pieces as long as the first byte says. The
/// messages that are done must be the right ones, if the wire is encrypted.
std::string run_wire(std::string_view bytes, TcpWire& wire, const std::string& honest,
                     bool encrypted) {
  if (bytes.empty()) return "";
  const auto most = static_cast<std::size_t>(static_cast<unsigned char>(bytes.front())) + 1;
  bytes.remove_prefix(1);
  const bool all_come = bytes == honest;
  const Ends ends;
  bool ended = false;
  std::size_t next = 0;
  while (next < kAwaited.size() && !ended) {
    const auto& awaited = kAwaited[next++];
    Memory memory(awaited.tag, awaited.bytes, 0);
    for (;;) {
      if (auto broken = read_message(wire, ends.high.value(), memory, ended); !broken.empty())
        return broken;
      if (memory.transfer.done() || ended) break;
      if (bytes.empty()) return all_come ? "a message did not come" : "";
      const auto piece = bytes.substr(0, most);
      bytes.remove_prefix(piece.size());
      HORO_CHECK(send(ends.low.value(), piece.data(), piece.size(), 0) ==
                 static_cast<ssize_t>(piece.size()));
    }
    if (ended && all_come) return "a message is refused that was not changed";
    if (!ended && encrypted && !memory.holds(awaited.fill)) return "a forged message was taken";
  }
  return "";
}

std::string plain_stream() {
  return stream_of(*plain_wire());
}

std::string encrypted_stream() {
  const auto wire = encrypted_end(kv::Direction::to_server);
  return wire == nullptr ? "" : stream_of(*wire);
}

std::string run_plain(std::string_view bytes) {
  static const auto honest = plain_stream();
  return run_wire(bytes, *plain_wire(), honest, false);
}

std::string run_encrypted(std::string_view bytes) {
  static const auto honest = encrypted_stream();
  const auto wire = encrypted_end(kv::Direction::to_client);
  return wire == nullptr ? "" : run_wire(bytes, *wire, honest, true);
}

std::string hello() {
  return std::string(
      TcpHandshake::connecting(kKnown, {.set = set_token(kKnown, "set"), .from = 2, .to = 5}, {})
          .output());
}

}  // namespace

std::vector<Target> tcp_targets() {
  return {{.name = "tcp-stranger",
           .run = run_stranger,
           .seeds = {hello(), hello() + std::string(32, 'x'), hello().substr(0, 20)},
           .words = {"horo-tx"},
           .rounds = 20000},
          {.name = "tcp-contacts",
           .run = run_contacts,
           .seeds = {"10.0.0.1:4711\n:4712\n[fd00::1]:5\n", "h:65535\n",
                     "h:1 10.1.0.1 fd01::1\n:2\n", ""},
           .words = {"\n", ":", "[", " ", "\n:1\n"},
           .rounds = 50000},
          {.name = "tcp-plain",
           .run = run_plain,
           .seeds = {'\xff' + plain_stream(), '\0' + plain_stream()},
           .words = {std::string(16, '\0')},
           .rounds = 10000},
          {.name = "tcp-encrypted",
           .run = run_encrypted,
           .seeds = {'\xff' + encrypted_stream(), '\x0c' + encrypted_stream(),
                     '\0' + encrypted_stream()},
           .words = {std::string(16, '\0'), std::string(32, '\0')},
           .rounds = 10000}};
}

}  // namespace horo::fuzz
