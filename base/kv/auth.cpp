// SPDX-License-Identifier: Apache-2.0
#include "base/kv/auth.hpp"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <sys/random.h>
#include <utility>

#include <sodium.h>

namespace horo::kv {

namespace {

using Mac = std::array<std::uint8_t, crypto_auth_hmacsha256_BYTES>;

/// An HMAC over a label and parts. The label prevents that the result of one use of a key is valid
/// for another use.
class Hmac {
 public:
  Hmac(BytesView key, std::string_view label) {
    constexpr std::uint8_t kNone = 0;  // An empty key has no address, and libsodium wants one.
    crypto_auth_hmacsha256_init(&state_, key.empty() ? &kNone : key.data(), key.size());
    add({reinterpret_cast<const std::uint8_t*>(label.data()), label.size()});
  }

  ~Hmac() { sodium_memzero(&state_, sizeof state_); }

  Hmac(const Hmac&) = delete;
  Hmac& operator=(const Hmac&) = delete;
  Hmac(Hmac&&) = delete;
  Hmac& operator=(Hmac&&) = delete;

  Hmac& add(BytesView bytes) {
    if (!bytes.empty()) crypto_auth_hmacsha256_update(&state_, bytes.data(), bytes.size());
    return *this;
  }

  template <typename T>
  Hmac& number(T value) {
    std::array<std::uint8_t, sizeof(T)> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::uint8_t>(value >> (8U * i));
    }
    return add(bytes);
  }

  Mac finish() {
    Mac mac{};
    crypto_auth_hmacsha256_final(&state_, mac.data());
    return mac;
  }

 private:
  crypto_auth_hmacsha256_state state_{};
};

Hmac& add_handshake(Hmac& hmac, const Handshake& handshake) {
  return hmac.number(handshake.client_version)
      .add(handshake.client_nonce)
      .add(handshake.server_nonce);
}

Result<std::array<std::uint8_t, 32>> random_bytes() {
  std::array<std::uint8_t, 32> bytes{};
  std::size_t have = 0;
  while (have < bytes.size()) {
    const auto n = getrandom(bytes.data() + have, bytes.size() - have, 0);
    if (n < 0) {
      if (errno == EINTR) continue;
      return fail_errno(errno, "reading random bytes (getrandom)");
    }
    have += static_cast<std::size_t>(n);
  }
  return bytes;
}

}  // namespace

Result<Secret> make_secret() {
  return random_bytes();
}

Result<Nonce> make_nonce() {
  return random_bytes();
}

Secret derived_secret(const Secret& secret, std::string_view service, std::uint64_t epoch) {
  Hmac hmac(secret, service);
  return hmac.number(epoch).finish();
}

Secret hkdf(const Secret& secret, BytesView salt, std::string_view info) {
  const auto extracted = Hmac(salt, "").add(secret).finish();
  constexpr std::uint8_t kFirstBlock = 1;
  return Hmac(extracted, info).number(kFirstBlock).finish();
}

Proof client_proof(const Secret& secret, const Handshake& handshake) {
  Hmac hmac(secret, "horo-kv client");
  return add_handshake(hmac, handshake).finish();
}

Proof server_proof(const Secret& secret, const Handshake& handshake, const ServerTerms& terms) {
  Hmac hmac(secret, "horo-kv server");
  return add_handshake(hmac, handshake).number(terms.version).number(terms.max_payload).finish();
}

bool same(const Proof& a, const Proof& b) {
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

Seal::Seal(const Secret& secret, const Handshake& handshake, Direction direction) {
  Hmac hmac(secret, "horo-kv session");
  key_ = add_handshake(hmac, handshake).number(static_cast<std::uint8_t>(direction)).finish();
}

Seal::~Seal() {
  sodium_memzero(key_.data(), key_.size());
}

Seal::Seal(Seal&& other) noexcept : key_(other.key_), frames_(other.frames_) {
  sodium_memzero(other.key_.data(), other.key_.size());
}

Seal& Seal::operator=(Seal&& other) noexcept {
  std::swap(key_, other.key_);
  std::swap(frames_, other.frames_);
  return *this;
}

Seal::Number Seal::next_number() {
  Number number{};
  for (std::size_t i = 0; i < sizeof frames_; ++i)
    number[i] = static_cast<std::uint8_t>(frames_ >> (8U * i));
  ++frames_;
  return number;
}

Tag Seal::close(std::span<std::uint8_t> payload) {
  const auto number = next_number();
  Tag tag{};
  crypto_aead_chacha20poly1305_ietf_encrypt_detached(payload.data(), tag.data(), nullptr,
                                                     payload.data(), payload.size(), nullptr, 0,
                                                     nullptr, number.data(), key_.data());
  return tag;
}

bool Seal::opens(std::span<std::uint8_t> payload, BytesView tag) {
  if (tag.size() != sizeof(Tag)) return false;
  const auto number = next_number();
  return crypto_aead_chacha20poly1305_ietf_decrypt_detached(payload.data(), nullptr, payload.data(),
                                                            payload.size(), tag.data(), nullptr, 0,
                                                            number.data(), key_.data()) == 0;
}

}  // namespace horo::kv
