// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks in one process with a relay between them, which reads and changes what
// passes, as an attacker in the network can.
#include <atomic>
#include <functional>
#include <poll.h>
#include <sys/socket.h>
#include <thread>

#include <catch2/catch.hpp>

#include "base/kv/server/listener.hpp"
#include "base/kv/socket.hpp"
#include "runtime/backends/tcp/tcp_transport.hpp"

using namespace horo;
using namespace horo::runtime;
using kv::Encryption;

namespace {

const kv::Secret kSecret{1, 2, 3};
constexpr std::size_t kProof = 72 + 32;  // The bytes of the connecting rank before its messages.
constexpr std::size_t kMessage = 16 + 16 + 8 + 16;  // One of 8 bytes: two records with their tags.

Deadline soon() {
  return Deadline::in(SteadyClock::instance(), std::chrono::seconds(30));
}

/// Passes on what one connection carries. The first bytes behind the proof of the connecting rank
/// are held until there are `held` of them, and given to `change`. When the result is shorter the
/// relay then ends the connection.
class Relay {
 public:
  using Change = std::function<std::string(std::string)>;

  Relay(const kv::Address& to, std::size_t held, Change change)
      : to_(to), held_(held), change_(std::move(change)), thread_([this] { run(); }) {}

  ~Relay() { stop(); }

  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  const kv::Address& address() const { return listener_.address(); }

  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  /// The bytes of the connecting rank. After stop().
  const std::string& heard() const { return heard_; }

 private:
  void run() {
    int from = -1;
    while (from < 0 && !stop_) {
      pollfd entry{.fd = listener_.descriptor(), .events = POLLIN, .revents = 0};
      poll(&entry, 1, 50);
      from = listener_.accept().value();
    }
    if (from < 0) return;
    const UniqueFd rank(from);
    auto other = kv::Socket::connect(to_, soon());
    if (!other) return;
    const UniqueFd peer(other->release());
    while (!stop_) {
      std::array<pollfd, 2> entries{pollfd{.fd = rank.value(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = peer.value(), .events = POLLIN, .revents = 0}};
      poll(entries.data(), entries.size(), 50);
      if (entries[0].revents != 0 && !pass_changed(rank.value(), peer.value())) return;
      if (entries[1].revents != 0 && !pass(peer.value(), rank.value())) return;
    }
  }

  static std::string read_from(int socket) {
    std::string bytes(65536, ' ');
    const auto n = recv(socket, bytes.data(), bytes.size(), 0);
    bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return bytes;
  }

  static bool write_to(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN) return false;
      if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  static bool pass(int from, int to) {
    const auto bytes = read_from(from);
    return !bytes.empty() && write_to(to, bytes);
  }

  bool pass_changed(int from, int to) {
    const auto bytes = read_from(from);
    if (bytes.empty()) return false;
    heard_ += bytes;
    if (passed_ < kProof) passed_ += forward(to, std::min(heard_.size(), kProof) - passed_);
    if (passed_ < kProof) return true;
    if (!changed_ && heard_.size() >= kProof + held_) {
      changed_ = true;
      const auto instead = change_(heard_.substr(kProof, held_));
      passed_ += held_;
      if (!write_to(to, instead) || instead.size() < held_) return false;
    }
    if (changed_) passed_ += forward(to, heard_.size() - passed_);
    return true;
  }

  std::size_t forward(int to, std::size_t bytes) {
    write_to(to, std::string_view(heard_).substr(passed_, bytes));
    return bytes;
  }

  kv::Listener listener_{kv::Listener::open({"127.0.0.1", 0}).value()};
  const kv::Address to_;
  const std::size_t held_;
  const Change change_;
  std::string heard_;
  std::size_t passed_ = 0;
  bool changed_ = false;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

struct One {
  std::shared_ptr<TcpEndpoint> endpoint;
  std::unique_ptr<TcpTransport> transport;

  One(int position, Encryption encryption)
      : endpoint(TcpEndpoint::open("127.0.0.1", position, kSecret, encryption).value()) {
    const Communicator pair{.position = position,
                            .members = {0, 1},
                            .name = "pair",
                            .timeout = std::chrono::seconds(30)};
    transport = TcpTransport::make(endpoint, pair, 1).value();
  }

  void meet(const kv::Address& low, const kv::Address& high) {
    endpoint->contacts() = {{0, {low}}, {1, {high}}};
    transport->take_addresses();
  }
};

TransportMessage message(int peer, std::uint64_t tag, std::vector<std::byte>& bytes) {
  return {.peer = peer, .tag = tag, .at = bytes.data(), .bytes = bytes.size()};
}

std::vector<std::byte> filled(std::size_t size, char value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

/// Rank 0 sends two messages of 8 bytes through a relay. Returns what rank 1 has heard, or its
/// error. `heard`, if there is one, gets the bytes on the wire.
std::string through(Encryption encryption, std::size_t held, Relay::Change change,
                    std::string* heard = nullptr) {
  One low(0, encryption);
  One high(1, encryption);
  Relay relay(high.endpoint->address(), held, std::move(change));
  low.meet(low.endpoint->address(), relay.address());
  high.meet(low.endpoint->address(), high.endpoint->address());
  auto first = filled(8, 'a');
  auto second = filled(8, 'b');
  std::array rooms{filled(8, 0), filled(8, 0)};
  std::thread sender([&] {
    const auto one = low.transport->send(message(1, 1, first)).value();
    const auto two = low.transport->send(message(1, 2, second)).value();
    static_cast<void>(one->wait());
    static_cast<void>(two->wait());
  });
  const auto one = high.transport->receive(message(0, 1, rooms[0])).value();
  const auto two = high.transport->receive(message(0, 2, rooms[1])).value();
  const auto at_first = one->wait();
  const auto at_second = two->wait();
  low.transport->interrupt();
  sender.join();
  relay.stop();
  if (heard != nullptr) *heard = relay.heard();
  if (!at_first) return at_first.error().message;
  std::string text(reinterpret_cast<const char*>(rooms[0].data()), 8);
  if (!at_second) return text + ": " + at_second.error().message;
  return text + std::string(reinterpret_cast<const char*>(rooms[1].data()), 8);
}

std::string unchanged(std::string bytes) {
  return bytes;
}

}  // namespace

TEST_CASE("with encryption nobody on the way can read a message") {
  std::string plain;
  std::string encrypted;
  CHECK(through(Encryption::off, 1, unchanged, &plain) == "aaaaaaaabbbbbbbb");
  CHECK(through(Encryption::on, 1, unchanged, &encrypted) == "aaaaaaaabbbbbbbb");
  CHECK(plain.find("aaaaaaaa") != std::string::npos);
  CHECK(encrypted.find("aaaa") == std::string::npos);
  CHECK(encrypted.size() == kProof + 2 * kMessage);
}

TEST_CASE("a changed record ends the connection with an error that names rank, host and port") {
  // One byte in the header, its tag, the first message and its tag.
  for (const std::size_t at : {3, 20, 33, 50}) {
    const auto error = through(Encryption::on, kMessage, [at](std::string bytes) {
      bytes[at] ^= 1;
      return bytes;
    });
    CHECK_THAT(error, Catch::StartsWith("rank 0 at 127.0.0.1:") &&
                          Catch::Contains("what came from 127.0.0.1:") &&
                          Catch::Contains("was changed, cut, repeated or left out"));
  }
}

TEST_CASE("a repeated record and records in another order are refused") {
  const auto repeated =
      through(Encryption::on, kMessage, [](const std::string& bytes) { return bytes + bytes; });
  CHECK_THAT(repeated, Catch::StartsWith("aaaaaaaa: rank 0 at 127.0.0.1:") &&
                           Catch::Contains("was changed, cut, repeated"));
  const auto swapped = through(Encryption::on, 2 * kMessage, [](const std::string& bytes) {
    return bytes.substr(kMessage) + bytes.substr(0, kMessage);
  });
  CHECK_THAT(swapped, Catch::Contains("was changed, cut, repeated"));
}

TEST_CASE("a record that is cut by the end of the connection is reported as such") {
  const auto cut = through(Encryption::on, kMessage,
                           [](const std::string& bytes) { return bytes.substr(0, 10); });
  CHECK_THAT(cut, Catch::StartsWith("rank 0 at 127.0.0.1:") &&
                      Catch::EndsWith("has ended in the middle of a message"));
}

TEST_CASE("a rank that encrypts and one that does not tell their users why they cannot talk") {
  One low(0, Encryption::on);
  One high(1, Encryption::off);
  low.meet(low.endpoint->address(), high.endpoint->address());
  auto room = filled(8, 0);
  const auto pending = low.transport->receive(message(1, 1, room)).value();
  const auto status = pending->wait();
  REQUIRE_FALSE(status);
  CHECK_THAT(status.error().message, Catch::Contains("does not encrypt, and this side does") &&
                                         Catch::Contains("HORO_ENCRYPT"));
}

TEST_CASE("large encrypted messages in both directions at once arrive whole") {
  // More than two records, and not a whole number of them.
  constexpr std::size_t kBytes = (5 << 20) + 77;
  One low(0, Encryption::on);
  One high(1, Encryption::on);
  low.meet(low.endpoint->address(), high.endpoint->address());
  high.meet(low.endpoint->address(), high.endpoint->address());
  std::array<std::string, 2> wrong{"not done", "not done"};
  const auto run = [&](One& one, int me) {
    auto out = filled(kBytes, static_cast<char>('x' + me));
    auto in = filled(kBytes, 0);
    auto nothing = filled(0, 0);
    const auto received = one.transport->receive(message(1 - me, 1, in)).value();
    const auto empty = one.transport->receive(message(1 - me, 2, nothing)).value();
    const auto sent = one.transport->send(message(1 - me, 1, out)).value();
    const auto sent_empty = one.transport->send(message(1 - me, 2, nothing)).value();
    std::string error;
    for (const auto& pending : {&sent, &sent_empty, &received, &empty}) {
      if (const auto status = (*pending)->wait(); !status) error = status.error().message;
    }
    if (in != filled(kBytes, static_cast<char>('y' - me))) error += "wrong bytes";
    wrong[static_cast<std::size_t>(me)] = error;
  };
  std::thread other([&] { run(high, 1); });
  run(low, 0);
  other.join();
  CHECK(wrong == std::array<std::string, 2>{});
}
