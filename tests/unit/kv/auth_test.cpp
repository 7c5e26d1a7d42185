// SPDX-License-Identifier: Apache-2.0
#include "base/kv/auth.hpp"

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

TEST_CASE("a seal opens its frames once, in order, in one direction") {
  Seal sender(filled(9), kHandshake, Direction::to_server);
  const auto first = sender.next(as_bytes("one"));
  const auto second = sender.next(as_bytes("t"), as_bytes("wo"));

  SECTION("in order") {
    Seal receiver(filled(9), kHandshake, Direction::to_server);
    CHECK(receiver.opens(as_bytes("one"), first));
    CHECK(receiver.opens(as_bytes("two"), second));
  }
  SECTION("not left out") {
    Seal receiver(filled(9), kHandshake, Direction::to_server);
    CHECK_FALSE(receiver.opens(as_bytes("two"), second));
  }
  SECTION("not repeated") {
    Seal receiver(filled(9), kHandshake, Direction::to_server);
    CHECK(receiver.opens(as_bytes("one"), first));
    CHECK_FALSE(receiver.opens(as_bytes("one"), first));
  }
  SECTION("not sent back") {
    Seal receiver(filled(9), kHandshake, Direction::to_client);
    CHECK_FALSE(receiver.opens(as_bytes("one"), first));
  }
  SECTION("not changed") {
    Seal receiver(filled(9), kHandshake, Direction::to_server);
    CHECK_FALSE(receiver.opens(as_bytes("onf"), first));
  }
  SECTION("not cut") {
    Seal receiver(filled(9), kHandshake, Direction::to_server);
    CHECK_FALSE(receiver.opens(as_bytes("one"), BytesView(first).first(15)));
  }
  SECTION("not with another secret or handshake") {
    Seal receiver(filled(8), kHandshake, Direction::to_server);
    CHECK_FALSE(receiver.opens(as_bytes("one"), first));
    auto other = kHandshake;
    other.server_nonce[0] ^= 1U;
    Seal elsewhere(filled(9), other, Direction::to_server);
    CHECK_FALSE(elsewhere.opens(as_bytes("one"), first));
  }
}
