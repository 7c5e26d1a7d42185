// SPDX-License-Identifier: Apache-2.0
#include "base/kv/auth.hpp"

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <catch2/catch.hpp>

#include "base/kv/kv_messages.hpp"

using namespace horo::kv;  // NOLINT(google-build-using-namespace): a test of this namespace

namespace {

Secret filled(std::uint8_t value) {
  Secret secret;
  secret.fill(value);
  return secret;
}

const Handshake kHandshake{
    .client_version = 1, .client_nonce = filled(1), .server_nonce = filled(2)};

}  // namespace

TEST_CASE("secrets and nonces differ from each other") {
  CHECK(*make_secret() != *make_secret());
  CHECK(*make_nonce() != *make_nonce());
}

TEST_CASE("a proof depends on the secret and on the whole handshake") {
  const auto proof = client_proof(filled(9), kHandshake);
  CHECK(same(proof, client_proof(filled(9), kHandshake)));
  CHECK_FALSE(same(proof, client_proof(filled(8), kHandshake)));
  auto other = kHandshake;
  other.client_version = 2;
  CHECK_FALSE(same(proof, client_proof(filled(9), other)));
  other = kHandshake;
  other.client_nonce[31] ^= 1U;
  CHECK_FALSE(same(proof, client_proof(filled(9), other)));
  other = kHandshake;
  std::swap(other.client_nonce, other.server_nonce);
  CHECK_FALSE(same(proof, client_proof(filled(9), other)));
}

TEST_CASE("the server's proof differs from the client's and covers its terms") {
  const ServerTerms terms{.version = 1, .max_payload = 4096};
  const auto proof = server_proof(filled(9), kHandshake, terms);
  CHECK_FALSE(same(proof, client_proof(filled(9), kHandshake)));
  CHECK_FALSE(
      same(proof, server_proof(filled(9), kHandshake, {.version = 2, .max_payload = 4096})));
  CHECK_FALSE(
      same(proof, server_proof(filled(9), kHandshake, {.version = 1, .max_payload = 4097})));
}

TEST_CASE("nobody without the key can read a frame, and equal frames look different") {
  Seal sender(filled(9), kHandshake, Direction::to_server);
  std::string stream;
  append_frame(stream, "payload", sender);
  append_frame(stream, "pay", sender, "load");
  CHECK(stream.find("payload") == std::string::npos);
  CHECK(stream.find("load") == std::string::npos);
  const auto whole = stream.size() / 2;
  CHECK(stream.substr(kLengthBytes, 7) != stream.substr(whole + kLengthBytes, 7));
  Seal receiver(filled(9), kHandshake, Direction::to_server);
  for (std::size_t at = 0; at < stream.size(); at += whole) {
    const auto payload = std::span(stream).subspan(at + kLengthBytes, 7);
    REQUIRE(opens(receiver, payload, as_bytes(stream).subspan(at + kLengthBytes + 7, kTagBytes)));
    CHECK(std::string_view(payload.data(), payload.size()) == "payload");
  }
}

namespace {

struct Closed {
  std::string payload;
  Tag tag;
};

/// Two frames of one connection.
struct Frames {
  Frames() : first(close("one")), second(close("two")) {}

  Closed close(std::string payload) {
    auto* const at = reinterpret_cast<std::uint8_t*>(payload.data());
    const auto tag = sender.close({at, payload.size()});
    return {std::move(payload), tag};
  }

  Seal sender{filled(9), kHandshake, Direction::to_server};
  Closed first;
  Closed second;
};

bool passes(Seal& receiver, Closed frame) {
  return opens(receiver, frame.payload, frame.tag);
}

}  // namespace

TEST_CASE("a seal opens its frames once, in order") {
  const Frames frames;
  Seal receiver(filled(9), kHandshake, Direction::to_server);
  SECTION("in order") {
    CHECK(passes(receiver, frames.first));
    CHECK(passes(receiver, frames.second));
  }
  SECTION("not left out") {
    CHECK_FALSE(passes(receiver, frames.second));
  }
  SECTION("not repeated") {
    CHECK(passes(receiver, frames.first));
    CHECK_FALSE(passes(receiver, frames.first));
  }
}

TEST_CASE("a seal opens no changed frame, and none of another connection or direction") {
  const Frames frames;
  const auto refuses = [&frames](Seal receiver) { return !passes(receiver, frames.first); };
  CHECK(refuses({filled(9), kHandshake, Direction::to_client}));
  CHECK(refuses({filled(8), kHandshake, Direction::to_server}));
  auto other = kHandshake;
  other.server_nonce[0] ^= 1U;
  CHECK(refuses({filled(9), other, Direction::to_server}));

  auto changed = frames.first;
  changed.payload[1] = static_cast<char>(changed.payload[1] ^ 1);
  Seal receiver(filled(9), kHandshake, Direction::to_server);
  CHECK_FALSE(passes(receiver, changed));
}

TEST_CASE("a seal opens no frame whose payload or tag is cut") {
  const Frames frames;
  Seal receiver(filled(9), kHandshake, Direction::to_server);
  auto payload = frames.first.payload;
  CHECK_FALSE(opens(receiver, payload, BytesView(frames.first.tag).first(15)));
  Seal another(filled(9), kHandshake, Direction::to_server);
  CHECK_FALSE(opens(another, std::span(payload).first(2), frames.first.tag));
}
