// SPDX-License-Identifier: Apache-2.0
#include "base/kv/cipher.hpp"

#include <vector>

#include <catch2/catch.hpp>

using namespace horo;      // NOLINT(google-build-using-namespace): a test of it
using namespace horo::kv;  // NOLINT(google-build-using-namespace): a test of it

namespace {

using Bytes = std::vector<std::uint8_t>;

const Secret kSecret{1, 2, 3};
const Handshake kHandshake{.client_version = 1, .client_nonce = {4}, .server_nonce = {5}};
constexpr std::size_t kTag = RecordCipher::kTagBytes;

RecordCipher cipher(Direction direction = Direction::to_server, const Secret& secret = kSecret,
                    const Handshake& handshake = kHandshake) {
  return RecordCipher::make(secret, handshake, direction, 4).value();
}

/// The next record with its tag.
Bytes sealed(RecordCipher& from, const std::string& text) {
  Bytes out(text.size() + kTag);
  REQUIRE(from.seal(as_bytes(text), out.data()));
  return out;
}

/// The text of a record, or "refused".
std::string opened(RecordCipher& to, Bytes record) {
  const auto size = record.size() - kTag;
  const bool good = to.open(std::span(record).first(size), BytesView(record).subspan(size));
  return good ? std::string(as_text(BytesView(record).first(size))) : "refused";
}

Bytes from_hex(std::string_view text) {
  Bytes bytes;
  for (std::size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(
        static_cast<std::uint8_t>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  return bytes;
}

}  // namespace

TEST_CASE("HKDF gives the key that another implementation of RFC 5869 gives") {
  // Python's hmac module has computed the expected key.
  Secret secret{};
  secret.fill(0x0b);
  const auto key = hkdf(secret, from_hex("000102030405060708090a0b0c"), "info");
  CHECK(Bytes(key.begin(), key.end()) ==
        from_hex("2f016ed50d358562e49c8ffe9f9d6ec6cc922a5db63ac43bf90041f42b0fdb81"));
}

TEST_CASE("records of any length cross, also where both ends derive the next key") {
  auto from = cipher();
  auto to = cipher();
  for (int i = 0; i < 11; ++i) {
    const std::string text(static_cast<std::size_t>(i * i), 'x');
    auto record = sealed(from, text);
    if (i > 1) CHECK(as_text(record).find("xxxx") == std::string::npos);
    CHECK(opened(to, record) == text);
  }
}

TEST_CASE("the same text is another record each time, in each direction and connection") {
  auto one = cipher();
  const auto first = sealed(one, "text");
  CHECK(sealed(one, "text") != first);
  auto back = cipher(Direction::to_client);
  CHECK(sealed(back, "text") != first);
  auto handshake = kHandshake;
  handshake.server_nonce = {6};
  auto other = cipher(Direction::to_server, kSecret, handshake);
  CHECK(sealed(other, "text") != first);
}

TEST_CASE("a record that was changed in any byte does not open") {
  auto from = cipher();
  const auto record = sealed(from, "text");
  for (std::size_t i = 0; i < record.size(); ++i) {
    auto changed = record;
    changed[i] ^= 1U;
    auto to = cipher();
    CHECK(opened(to, changed) == "refused");
  }
}

TEST_CASE("a record that is repeated, left out, cut or comes from elsewhere does not open") {
  auto from = cipher();
  const auto first = sealed(from, "first");
  const auto second = sealed(from, "second");
  auto repeated = cipher();
  CHECK(opened(repeated, first) == "first");
  CHECK(opened(repeated, first) == "refused");
  auto left_out = cipher();
  CHECK(opened(left_out, second) == "refused");
  auto cut = cipher();
  CHECK(opened(cut, Bytes(first.begin(), first.end() - 1)) == "refused");
  auto reflected = cipher(Direction::to_client);
  CHECK(opened(reflected, first) == "refused");
  auto stranger = cipher(Direction::to_server, Secret{9});
  CHECK(opened(stranger, first) == "refused");
}
