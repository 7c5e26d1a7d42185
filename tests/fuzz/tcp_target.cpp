// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include "base/codec/bytes.hpp"
#include "runtime/backends/tcp/tcp_contacts.hpp"
#include "runtime/backends/tcp/tcp_handshake.hpp"

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
           .seeds = {"10.0.0.1:4711\n:4712\n[fd00::1]:5\n", "h:65535\n", ""},
           .words = {"\n", ":", "[", "\n:1\n"},
           .rounds = 50000}};
}

}  // namespace horo::fuzz
