// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/kv/server/server_session.hpp"

using horo::kv::ServerSession;
namespace kv = horo::kv;

namespace {

const kv::Secret kSecret{1, 2, 3};
const kv::Nonce kServerNonce{4, 5, 6};
const kv::ServerTerms kTerms{.version = kv::kVersion, .max_payload = 4096};

std::string drain(ServerSession& session) {
  std::string out;
  while (session.has_output()) {
    out += session.output().front();  // One byte at a time: every partial write.
    session.sent(1);
  }
  return out;
}

const kv::Handshake kHandshake{
    .client_version = kv::kVersion, .client_nonce = {7, 8}, .server_nonce = kServerNonce};

const std::string kHello = encode(kv::Hello{.client_nonce = kHandshake.client_nonce});

void feed(ServerSession& session, std::string_view bytes) {
  session.feed(kv::as_bytes(bytes));
}

std::string proof_bytes(const kv::Secret& secret, const kv::Handshake& handshake) {
  const auto proof = kv::client_proof(secret, handshake);
  return {proof.begin(), proof.end()};
}

ServerSession opened() {
  ServerSession session(kSecret, kTerms, kServerNonce);
  feed(session, kHello);
  REQUIRE(session.next());
  drain(session);
  feed(session, proof_bytes(kSecret, kHandshake));
  REQUIRE(session.next());
  drain(session);
  return session;
}

}  // namespace

TEST_CASE("before the proof a peer is not authenticated, and only its next message is read") {
  ServerSession session(kSecret, kTerms, kServerNonce);
  CHECK(session.room() == kv::kHelloBytes);
  feed(session, kHello);
  REQUIRE(session.next());
  CHECK(drain(session) == std::string(kServerNonce.begin(), kServerNonce.end()));
  CHECK_FALSE(session.authenticated());
  CHECK(session.room() == kv::kProofBytes);
  feed(session, proof_bytes(kSecret, kHandshake));
  REQUIRE(session.next());
  CHECK(session.authenticated());
  const auto welcome = kv::decode_welcome(kv::as_bytes(drain(session)));
  REQUIRE(welcome);
  CHECK(kv::same(welcome->proof, kv::server_proof(kSecret, kHandshake, kTerms)));
}

TEST_CASE("a wrong proof gets no answer") {
  ServerSession session(kSecret, kTerms, kServerNonce);
  feed(session, kHello);
  REQUIRE(session.next());
  drain(session);
  feed(session, proof_bytes(kv::Secret{9}, kHandshake));
  CHECK_FALSE(session.next());
  CHECK_FALSE(session.has_output());
  CHECK_FALSE(session.authenticated());
}

TEST_CASE(
    "a client of another version that knows the secret gets the welcome, then the session ends") {
  ServerSession session(kSecret, kTerms, kServerNonce);
  auto handshake = kHandshake;
  handshake.client_version = kv::kVersion + 1;
  feed(session, encode(kv::Hello{.version = handshake.client_version,
                                 .client_nonce = handshake.client_nonce}));
  REQUIRE(session.next());
  drain(session);
  feed(session, proof_bytes(kSecret, handshake));
  REQUIRE(session.next());
  CHECK(session.ends_after_output());
  CHECK(kv::decode_welcome(kv::as_bytes(drain(session)))->terms.version == kv::kVersion);
}

TEST_CASE("requests are whole however their bytes arrive, and answers are encrypted") {
  auto session = opened();
  kv::Seal outgoing(kSecret, kHandshake, kv::Direction::to_server);
  kv::Seal incoming(kSecret, kHandshake, kv::Direction::to_client);
  std::string stream;
  append_frame(stream,
               *encode(kv::Request{.op = kv::Op::set, .id = 1, .keys = {"a"}, .value = "1"}),
               outgoing);
  append_frame(stream, *encode(kv::Request{.op = kv::Op::find, .id = 2, .keys = {"b"}}), outgoing);
  std::vector<std::uint32_t> ids;
  for (const char byte : stream) {
    feed(session, {&byte, 1});
    const auto request = session.next();
    REQUIRE(request);
    if (!*request) continue;
    ids.push_back((*request)->id);
    session.answer({.op = (*request)->op, .id = (*request)->id},
                   std::make_shared<const std::string>("value"));
    auto frame = drain(session);
    CHECK(frame.find("value") == std::string::npos);
    const auto payload = std::span(frame).subspan(4, frame.size() - 20);
    CHECK(kv::opens(incoming, payload, kv::as_bytes(frame).last(16)));
    CHECK(kv::decode_response(kv::as_bytes(frame).subspan(4, payload.size()))->value == "value");
  }
  CHECK(ids == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE("a frame that is too long or carries another seal ends the session") {
  auto session = opened();
  SECTION("too long, before its bytes are there") {
    feed(session, kv::encode_length(kTerms.max_payload + 1));
    CHECK_FALSE(session.next());
  }
  SECTION("another seal") {
    kv::Seal other(kv::Secret{9}, kHandshake, kv::Direction::to_server);
    std::string frame;
    append_frame(frame, *encode(kv::Request{.op = kv::Op::find, .keys = {"a"}}), other);
    feed(session, frame);
    CHECK_FALSE(session.next());
  }
  SECTION("a good seal on nonsense") {
    kv::Seal seal(kSecret, kHandshake, kv::Direction::to_server);
    std::string frame;
    append_frame(frame, "nonsense", seal);
    feed(session, frame);
    CHECK_FALSE(session.next());
  }
}
