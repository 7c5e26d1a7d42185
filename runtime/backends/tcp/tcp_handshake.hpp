// SPDX-License-Identifier: Apache-2.0
// The first bytes of a connection between two ranks, without its socket: both sides prove that they
// know the job's secret and mean the same connection. docs/design/backends.md has the bytes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "base/kv/auth.hpp"
#include "base/kv/cipher.hpp"
#include "base/kv/mutual_proof.hpp"
#include "base/result.hpp"

namespace horo::runtime {

/// Names a process set of one epoch without telling its name. Without the job's secret nobody can
/// compute it.
using SetToken = std::array<std::uint8_t, 16>;

SetToken set_token(const kv::Secret& secret, std::string_view name);

/// One connection. Ranks are those in the job.
struct TcpEdge {
  SetToken set{};
  std::uint32_t from = 0;  ///< Connects.
  std::uint32_t to = 0;    ///< Accepts.
  std::uint32_t worker = 0;

  friend bool operator==(const TcpEdge&, const TcpEdge&) = default;
};

/// The key of an edge's proofs: a proof for one edge is worthless for another.
kv::Secret edge_key(const kv::Secret& secret, const TcpEdge& edge);

/// Thread: owner.
class TcpHandshake {
 public:
  static constexpr std::uint32_t kVersion = 1;

  /// `nonce` is fresh.
  static TcpHandshake connecting(const kv::Secret& secret, const TcpEdge& edge,
                                 const kv::Nonce& nonce,
                                 kv::Encryption encryption = kv::Encryption::off);
  /// `me`: this rank. An edge to another one is refused.
  static TcpHandshake accepting(const kv::Secret& secret, std::uint32_t me, const kv::Nonce& nonce,
                                kv::Encryption encryption = kv::Encryption::off);

  /// How many bytes feed() takes now: never more than the other side's next message has.
  std::size_t room() const { return proof_.room(); }

  /// Fails: permission_denied (another secret, edge or service), version_mismatch,
  /// mismatch (one side encrypts).
  Status feed(BytesView bytes) { return proof_.feed(bytes); }

  /// Bytes to be put on the wire.
  std::string_view output() const { return proof_.output(); }

  /// `n` bytes of output() are sent.
  void sent(std::size_t n) { proof_.sent(n); }

  /// Both sides have proven what they must. Messages follow once output() is empty.
  bool open() const { return proof_.open(); }

  /// The connection's edge: known once open().
  TcpEdge edge() const;

  /// The ciphers of the messages that follow; null without encryption. Once open(). Fails:
  /// unavailable.
  Result<std::unique_ptr<kv::CipherPair>> ciphers() const;

 private:
  TcpHandshake(kv::MutualProof proof, kv::Encryption encryption, kv::Direction outgoing)
      : proof_(std::move(proof)), encryption_(encryption), outgoing_(outgoing) {}

  kv::MutualProof proof_;
  kv::Encryption encryption_;
  kv::Direction outgoing_;
};

}  // namespace horo::runtime
