// SPDX-License-Identifier: Apache-2.0
#include "base/kv/mutual_proof.hpp"

#include <catch2/catch.hpp>

using namespace horo;      // NOLINT(google-build-using-namespace): a test of it
using namespace horo::kv;  // NOLINT(google-build-using-namespace): a test of it

namespace {

const Secret kOurs{1, 2, 3};
constexpr ProvenService kService{.magic = "service1", .peer = "a test", .between = "tests"};
constexpr ProvenService kGreets{
    .magic = "service2", .peer = "a test", .between = "tests", .greeting = 4};

MutualProof client(const ProvenService& service, std::string_view greeting = {}) {
  return MutualProof::connecting(service, kOurs, Nonce{5}, greeting);
}

MutualProof server(const ProvenService& service, const Secret& key = kOurs) {
  return MutualProof::accepting(
      service, [key](BytesView) -> Result<Secret> { return key; }, Nonce{6});
}

/// Moves what `from` has to say, byte by byte. Fails: as feed().
Status pass(MutualProof& from, MutualProof& to) {
  while (!from.output().empty() && to.room() != 0) {
    const std::string byte(from.output().substr(0, 1));
    from.sent(1);
    HORO_TRY_STATUS(to.feed(as_bytes(byte)));
  }
  return {};
}

Status shake(MutualProof& one, MutualProof& other) {
  for (int i = 0; i < 3; ++i) {
    HORO_TRY_STATUS(pass(one, other));
    HORO_TRY_STATUS(pass(other, one));
  }
  return {};
}

}  // namespace

TEST_CASE("two ends with one secret prove it and have the same handshake and greeting") {
  auto one = client(kGreets, "four");
  auto other = server(kGreets);
  REQUIRE(shake(one, other));
  CHECK((one.open() && other.open()));
  CHECK(other.greeting() == "four");
  CHECK(other.key() == one.key());
  CHECK(other.handshake().client_nonce == Nonce{5});
  CHECK(one.handshake().server_nonce == Nonce{6});
  CHECK(other.room() == 0);
}

TEST_CASE("an end of another service is refused at its hello and told nothing") {
  auto one = client(kService);
  auto other = server(kGreets);
  REQUIRE(pass(one, other));  // Its hello is shorter than the other service's.
  const auto refused = other.feed(as_bytes("four"));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "the other side is not a test");
  CHECK(other.output().empty());
}

TEST_CASE("the accepting end may refuse a greeting, or choose a key by it") {
  auto choosy = MutualProof::accepting(
      kGreets,
      [](BytesView greeting) -> Result<Secret> {
        if (as_text(greeting) == "four") return kOurs;
        return fail(Errc::permission_denied, "not this one");
      },
      Nonce{6});
  auto right = client(kGreets, "four");
  CHECK(shake(right, choosy));

  auto wrong = client(kGreets, "five");
  auto other = MutualProof::accepting(
      kGreets,
      [](BytesView) -> Result<Secret> { return fail(Errc::permission_denied, "not this one"); },
      Nonce{6});
  const auto refused = shake(wrong, other);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "not this one");
  CHECK(other.output().empty());
}

TEST_CASE("an end with another key is refused by both ends") {
  auto one = client(kService);
  auto other = server(kService, Secret{9});
  const auto refused = shake(one, other);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::permission_denied);
  CHECK_FALSE(one.open());
  CHECK_FALSE(other.open());
}

TEST_CASE("both ends hear of another version, once they have proven who they are") {
  auto newer = kService;
  newer.version = 2;
  auto one = client(newer);
  auto other = server(kService);
  const auto at_server = shake(one, other);
  REQUIRE_FALSE(at_server);
  CHECK(at_server.error().message == "the other side speaks version 2 between tests, this 1");
  const auto at_client = pass(other, one);
  REQUIRE_FALSE(at_client);
  CHECK(at_client.error().message == "the other side speaks version 1 between tests, this 2");
}

TEST_CASE("both ends hear that only one of them encrypts") {
  auto encrypts = kService;
  encrypts.encryption = Encryption::on;
  auto one = client(encrypts);
  auto other = server(kService);
  const auto at_server = shake(one, other);
  REQUIRE_FALSE(at_server);
  CHECK(at_server.error().code == Errc::mismatch);
  CHECK(at_server.error().message.find("encrypts, and this side does not") != std::string::npos);
  const auto at_client = pass(other, one);
  REQUIRE_FALSE(at_client);
  CHECK(at_client.error().message.find("does not encrypt, and this side does") !=
        std::string::npos);
}
