// SPDX-License-Identifier: Apache-2.0
// Proofs that both ends of a key-value connection know the job's secret, by HMAC-SHA256, and the
// seal on every frame after that, by ChaCha20-Poly1305. Comparisons take constant time.
// docs/design/key-value.md has the bytes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/codec/bytes.hpp"
#include "base/result.hpp"

namespace horo::kv {

using horo::BytesView;

using Secret = std::array<std::uint8_t, 32>;  ///< One per job, in AgentSpec and in each board.
using Nonce = std::array<std::uint8_t, 32>;   ///< Random bytes, used in one handshake only.
using Proof = std::array<std::uint8_t, 32>;
using Tag = std::array<std::uint8_t, 16>;

/// From the kernel's random source. Fails: unavailable (no random source).
Result<Secret> make_secret();
Result<Nonce> make_nonce();

/// A secret for another service of the same job, so that a proof for one service is worthless for
/// the other.
Secret derived_secret(const Secret& secret, std::string_view service, std::uint64_t epoch);

/// Whether what follows a handshake is encrypted (base/kv/cipher.hpp).
enum class Encryption : std::uint8_t { off, on };

/// A key of 32 bytes by HKDF with SHA-256 (RFC 5869).
Secret hkdf(const Secret& secret, BytesView salt, std::string_view info);

/// The values that both ends of a handshake exchange before their proofs.
struct Handshake {
  std::uint32_t client_version = 0;
  Nonce client_nonce{};
  Nonce server_nonce{};
};

/// The server's properties, sent to a client that has proven to know the secret.
struct ServerTerms {
  std::uint32_t version = 0;
  std::uint32_t max_payload = 0;  ///< Bytes in a frame; the server closes on a longer one.
};

Proof client_proof(const Secret& secret, const Handshake& handshake);
Proof server_proof(const Secret& secret, const Handshake& handshake, const ServerTerms& terms);

/// Compares in constant time.
bool same(const Proof& a, const Proof& b);

/// Each direction has a key of its own, so that a frame that is sent back does not pass for an
/// answer.
enum class Direction : std::uint8_t { to_server = 1, to_client = 2 };

/// Encrypts and seals the frames of one direction of one connection: nobody else can read them, and
/// a frame that was changed, repeated, left out or taken from another connection does not open.
/// Erases its key when destroyed. Thread: owner.
class Seal {
 public:
  Seal(const Secret& secret, const Handshake& handshake, Direction direction);
  ~Seal();
  Seal(Seal&& other) noexcept;
  Seal& operator=(Seal&& other) noexcept;
  Seal(const Seal&) = delete;
  Seal& operator=(const Seal&) = delete;

  /// Encrypts the payload of the next frame where it stands, and returns its tag.
  Tag close(std::span<std::uint8_t> payload);

  /// Decrypts the payload of the next frame where it stands. False if `tag` is not that frame's:
  /// the payload means nothing then. Counts the frame.
  bool opens(std::span<std::uint8_t> payload, BytesView tag);

 private:
  using Number = std::array<std::uint8_t, 12>;

  Number next_number();

  std::array<std::uint8_t, 32> key_{};
  std::uint64_t frames_ = 0;
};

/// Both directions of one end of a connection.
struct SealPair {
  Seal outgoing;
  Seal incoming;
};

}  // namespace horo::kv
