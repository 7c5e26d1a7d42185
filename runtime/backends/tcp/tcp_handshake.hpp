// SPDX-License-Identifier: Apache-2.0
// The first bytes of a connection between two ranks, without its socket: both sides prove that they
// know the job's secret and mean the same connection. docs/design/backends.md has the bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/kv/auth.hpp"
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
                                 const kv::Nonce& nonce);
  /// `me`: this rank. An edge to another one is refused.
  static TcpHandshake accepting(const kv::Secret& secret, std::uint32_t me, const kv::Nonce& nonce);

  /// How many bytes feed() takes now: never more than the other side's next message has.
  std::size_t room() const;

  /// Fails: permission_denied (another secret, edge or service), version_mismatch.
  Status feed(BytesView bytes);

  /// Bytes to be put on the wire.
  std::string_view output() const { return std::string_view(output_).substr(sent_); }

  /// `n` bytes of output() are sent.
  void sent(std::size_t n) { sent_ += n; }

  /// Both sides have proven what they must. Messages follow once output() is empty.
  bool open() const { return state_ == State::open; }

  /// The connection's edge: known once open().
  const TcpEdge& edge() const { return edge_; }

 private:
  enum class State { hello, challenge, proof, welcome, open };

  TcpHandshake(const kv::Secret& secret, State state) : secret_(secret), state_(state) {}

  Status take_hello();
  Status take_challenge();
  Status take_proof();
  Status take_welcome();

  const kv::Secret secret_;
  State state_;
  std::optional<std::uint32_t> me_;
  TcpEdge edge_;
  kv::Handshake handshake_;
  kv::Secret key_{};
  std::string input_;
  std::string output_;
  std::size_t sent_ = 0;
};

}  // namespace horo::runtime
