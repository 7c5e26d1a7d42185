// SPDX-License-Identifier: Apache-2.0
// Clients that violate the protocol, by accident or on purpose.
#include "support.hpp"

#include <random>
#include <vector>

#include <catch2/catch.hpp>

using horo::kv::Op;
using horo::test::RawPeer;
using horo::test::RunningServer;
using horo::test::soon;
namespace kv = horo::kv;

namespace {

/// The server still serves clients and has closed all other connections.
void check_unharmed(RunningServer& server) {
  {
    auto client = server.client();
    REQUIRE(client.set("alive", "yes", soon()));
    CHECK(*client.get("alive", soon()) == "yes");
  }
  CHECK(server.reaches([](const auto& c) { return c.clients == 0 && c.unauthenticated == 0; }));
}

}  // namespace

TEST_CASE("a connection that sends garbage is closed without one byte of answer") {
  RunningServer server;
  std::mt19937 random(1);
  for (const std::size_t n : {44U, 100U, 4096U, 1U << 20U}) {
    std::string garbage(n, '\0');
    for (auto& byte : garbage) byte = static_cast<char>(random());
    const RawPeer peer(server.address());
    peer.send(garbage);
    CHECK(peer.receive_rest().empty());
  }
  {
    const RawPeer browser(server.address());
    REQUIRE(browser.send("GET /alive HTTP/1.1\r\nHost: localhost\r\nUser-Agent: x\r\n\r\n"));
    CHECK(browser.receive_rest().empty());
  }
  CHECK(server.counts().refused == 5);
  check_unharmed(server);
}

TEST_CASE("a client with a wrong secret gets only 32 random bytes") {
  RunningServer server;
  RawPeer peer(server.address());
  CHECK_FALSE(peer.shake_hands(kv::Secret{1}));
  CHECK(peer.receive_rest().empty());
  const auto client = kv::Client::connect(server.address(), kv::Secret{1}, soon());
  CHECK(client.error().code == horo::Errc::permission_denied);
  CHECK(client.error().message.find(server.address()) != std::string::npos);
  check_unharmed(server);
}

TEST_CASE("a recorded handshake cannot be used again") {
  RunningServer server;
  std::string recorded;
  std::string request;
  {
    RawPeer peer(server.address());
    REQUIRE(peer.shake_hands(server.secret));
    request = peer.frame({.op = Op::set, .keys = {"key"}, .value = "value"});
    REQUIRE(peer.send(request));
    REQUIRE(peer.response());
    recorded = peer.sent;
  }
  const RawPeer replay(server.address());
  replay.send(recorded + request);
  CHECK(replay.receive_rest().size() <= kv::kChallengeBytes);  // No welcome follows the challenge.
  check_unharmed(server);
}

TEST_CASE("connections without a handshake are closed after a time") {
  RunningServer server({.handshake_timeout = std::chrono::milliseconds(50)});
  const RawPeer silent(server.address());
  const RawPeer stuck(server.address());
  REQUIRE(stuck.send("horo"));
  const RawPeer half(server.address());
  REQUIRE(half.send(encode(kv::Hello{})));
  CHECK(silent.receive_rest().empty());
  CHECK(stuck.receive_rest().empty());
  CHECK(half.receive_rest().size() == kv::kChallengeBytes);
  check_unharmed(server);
}

TEST_CASE("a flood of connections without a handshake does not exclude clients") {
  RunningServer server({.unauthenticated = 4,
                        .handshake_timeout = std::chrono::hours(1),
                        .crowded_timeout = std::chrono::milliseconds(5)});
  std::vector<RawPeer> flood;
  for (int i = 0; i < 50; ++i) flood.emplace_back(server.address());
  auto client = server.client();
  CHECK(client.set("key", "value", soon()));
  CHECK(server.counts().unauthenticated <= 4);
  CHECK(server.counts().refused >= 42);
}

TEST_CASE("an authenticated client that sends an invalid frame is closed, and others are not") {
  RunningServer server;
  auto other = server.client();
  const auto check_closed = [&](const std::function<std::string(RawPeer&)>& bytes) {
    RawPeer peer(server.address());
    REQUIRE(peer.shake_hands(server.secret));
    peer.send(bytes(peer));
    CHECK(peer.receive_rest().empty());
    CHECK(other.set("key", "value", soon()));
  };
  SECTION("longer than allowed") {
    check_closed([](RawPeer&) { return kv::encode_length(kv::kMaxPayload); });
    check_closed([](RawPeer&) { return std::string("\xff\xff\xff\xff", 4); });
  }
  SECTION("empty") {
    check_closed([](RawPeer&) { return kv::encode_length(0); });
  }
  SECTION("changed on its way") {
    for (const std::size_t position : {4U, 12U, 30U}) {
      check_closed([&](RawPeer& peer) {
        auto frame = peer.frame({.op = Op::set, .keys = {"key"}, .value = "value"});
        frame[position] = static_cast<char>(frame[position] ^ 1);
        return frame;
      });
    }
  }
}

TEST_CASE("a frame cannot be repeated in its own connection") {
  RunningServer server;
  RawPeer peer(server.address());
  REQUIRE(peer.shake_hands(server.secret));
  const auto frame = peer.frame({.op = Op::add, .keys = {"n"}, .delta = 1});
  REQUIRE(peer.send(frame));
  CHECK(peer.response()->number == 1);
  peer.send(frame);
  CHECK_FALSE(peer.response());
  auto client = server.client();
  CHECK(*client.add("n", 0, soon()) == 1);
}

TEST_CASE("the server survives a client that ends after any byte of handshake and frames") {
  RunningServer server;
  const std::vector<kv::Request> requests{
      {.op = Op::set, .id = 1, .keys = {"a"}, .value = "value"},
      {.op = Op::wait, .id = 2, .keys = {"never", "ever"}},
      {.op = Op::get, .id = 3, .keys = {"a"}},
  };
  const auto total = [&] {
    RawPeer peer(server.address());
    REQUIRE(peer.shake_hands(server.secret));
    std::size_t n = peer.sent.size();
    for (const auto& request : requests) n += peer.frame(request).size();
    return n;
  }();
  for (std::size_t cut = 0; cut <= total; ++cut) {
    RawPeer peer(server.address());
    if (cut < kv::kHelloBytes) {
      REQUIRE(peer.send(encode(kv::Hello{}).substr(0, cut)));
    } else if (cut < kv::kHelloBytes + kv::kProofBytes) {
      REQUIRE(peer.send(encode(kv::Hello{})));
      REQUIRE(peer.receive(kv::kChallengeBytes).size() == kv::kChallengeBytes);
      REQUIRE(peer.send(std::string(cut - kv::kHelloBytes, 'p')));
    } else {
      REQUIRE(peer.shake_hands(server.secret));
      std::string stream;
      for (const auto& request : requests) stream += peer.frame(request);
      peer.send(std::string_view(stream).substr(0, cut - kv::kHelloBytes - kv::kProofBytes));
    }
  }
  check_unharmed(server);
  CHECK(server.counts().waiting == 0);
}

TEST_CASE("a new request replaces a wait that its client has given up") {
  RunningServer server;
  RawPeer peer(server.address());
  REQUIRE(peer.shake_hands(server.secret));
  REQUIRE(peer.send(peer.frame({.op = Op::get, .id = 1, .keys = {"key"}})));
  REQUIRE(server.reaches([](const auto& counts) { return counts.waiting == 1; }));
  REQUIRE(peer.send(peer.frame({.op = Op::find, .id = 2, .keys = {"key"}})));
  CHECK(peer.response()->id == 2);
  CHECK(server.counts().waiting == 0);
  REQUIRE(peer.send(peer.frame({.op = Op::set, .id = 3, .keys = {"key"}, .value = "v"})));
  CHECK(peer.response()->id == 3);  // No answer to request 1 comes before.
}

TEST_CASE("a client that reads no answers is not read from any more, and is closed in the end") {
  RunningServer server({.write_timeout = std::chrono::milliseconds(50)});
  auto other = server.client();
  REQUIRE(other.set("large", std::string(std::size_t{4} << 20U, 'x'), soon()));
  RawPeer peer(server.address());
  REQUIRE(peer.shake_hands(server.secret));
  // More answers than every socket buffer on the way can hold.
  std::string stream;
  for (std::uint32_t i = 0; i < 64; ++i)
    stream += peer.frame({.op = Op::get, .id = i, .keys = {"large"}});
  REQUIRE(peer.send(stream));
  CHECK(server.reaches(
      [](const auto& counts) { return counts.clients == 1 && counts.refused == 1; }));
  CHECK(other.set("key", "value", soon()));
}

TEST_CASE("a client that sends many requests at once gets every answer in order") {
  RunningServer server;
  RawPeer peer(server.address());
  REQUIRE(peer.shake_hands(server.secret));
  constexpr std::uint32_t kRequests = 5000;
  std::string stream;
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    stream += peer.frame({.op = Op::add, .id = i, .keys = {"n"}, .delta = 1});
  }
  std::thread sender([&] { peer.send(stream); });
  std::uint32_t good = 0;
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    const auto response = peer.response();
    if (response && response->id == i && response->number == std::int64_t{i} + 1) ++good;
  }
  sender.join();
  CHECK(good == kRequests);
}
