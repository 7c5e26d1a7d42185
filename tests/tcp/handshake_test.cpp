// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/codec/bytes.hpp"
#include "runtime/backends/tcp/tcp_handshake.hpp"

using namespace horo;
using namespace horo::runtime;

namespace {

const kv::Secret kOurs{1, 2, 3};
const kv::Secret kOthers{1, 2, 4};

TcpEdge edge_of(std::string_view name) {
  return {.set = set_token(kOurs, name), .from = 2, .to = 5, .worker = 1};
}

TcpHandshake client(const TcpEdge& edge, const kv::Secret& secret = kOurs) {
  return TcpHandshake::connecting(secret, edge, kv::make_nonce().value());
}

TcpHandshake server(std::uint32_t me = 5) {
  return TcpHandshake::accepting(kOurs, me, kv::make_nonce().value());
}

/// Moves what `from` has to say, byte by byte. Fails: as feed().
Status pass(TcpHandshake& from, TcpHandshake& to) {
  while (!from.output().empty() && to.room() != 0) {
    const std::string byte(from.output().substr(0, 1));
    from.sent(1);
    HORO_TRY_STATUS(to.feed(as_bytes(byte)));
  }
  return {};
}

Status shake(TcpHandshake& one, TcpHandshake& other) {
  for (int i = 0; i < 4; ++i) {
    HORO_TRY_STATUS(pass(one, other));
    HORO_TRY_STATUS(pass(other, one));
  }
  return {};
}

}  // namespace

TEST_CASE("two ranks of a job prove who they are and agree on the connection") {
  auto one = client(edge_of("set"));
  auto other = server();
  REQUIRE(shake(one, other));
  CHECK(one.open());
  CHECK(other.open());
  CHECK(other.edge() == edge_of("set"));
  CHECK(other.room() == 0);
}

TEST_CASE("a rank of another job is refused by both sides") {
  auto stranger = client(edge_of("set"), kOthers);
  auto ours = server();
  const auto refused = shake(stranger, ours);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::permission_denied);
  CHECK_FALSE(ours.open());

  auto honest = client(edge_of("set"));
  auto impostor = TcpHandshake::accepting(kOthers, 5, kv::make_nonce().value());
  CHECK_FALSE(shake(honest, impostor));
  CHECK_FALSE(honest.open());
}

TEST_CASE("an impostor that repeats the answers of another connection is refused") {
  // The first rank hears the right side; somebody notes the answers.
  auto first = client(edge_of("set"));
  auto right = server();
  REQUIRE(pass(first, right));
  const std::string challenge(right.output());
  REQUIRE(pass(right, first));
  REQUIRE(pass(first, right));
  const std::string welcome(right.output());

  auto second = client(edge_of("set"));
  REQUIRE(second.feed(as_bytes(challenge)));
  CHECK_FALSE(second.feed(as_bytes(welcome)));
  CHECK_FALSE(second.open());
}

TEST_CASE("the bytes of a rank that somebody repeats are refused") {
  auto one = client(edge_of("set"));
  auto other = server();
  std::string spoken(one.output());
  REQUIRE(pass(one, other));
  REQUIRE(pass(other, one));
  spoken += one.output();

  auto again = server();
  REQUIRE(again.feed(as_bytes(spoken).first(72)));
  CHECK_FALSE(again.feed(as_bytes(spoken).subspan(72)));
  CHECK_FALSE(again.open());
}

TEST_CASE("a proof for one set, rank or worker is worthless for another") {
  auto others = std::array{edge_of("another set"), edge_of("set"), edge_of("set")};
  others[1].from = 3;
  others[2].worker = 0;
  for (const auto& claimed : others) {
    // It claims one edge in its hello, and has the proof of another.
    auto claims = client(claimed);
    auto proves = client(edge_of("set"));
    auto other = server();
    REQUIRE(pass(claims, other));
    const std::string challenge(other.output());
    REQUIRE(proves.feed(as_bytes(challenge)));
    const std::string proof(proves.output().substr(72));
    CHECK_FALSE(other.feed(as_bytes(proof)));
    CHECK_FALSE(other.open());
  }
}

TEST_CASE("a connection for another rank, or of another service, is refused at its first message") {
  auto wrong_rank = server(6);
  CHECK_FALSE(wrong_rank.feed(as_bytes(client(edge_of("set")).output())));
  auto garbled = server();
  CHECK_FALSE(garbled.feed(as_bytes(std::string(72, '\xa5'))));
}

TEST_CASE("during the handshake no more is taken than the next message has") {
  auto other = server();
  CHECK(other.room() == 72);
  CHECK_FALSE(other.feed(as_bytes(std::string(100'000, 'x'))));
}
