// SPDX-License-Identifier: Apache-2.0
// One connection between two leaders without its socket: bytes in, payloads out, payloads in, bytes
// out. Both ends prove that they know the job's secret; after that every frame is encrypted and
// sealed. Until then all data come from an unknown peer, and little is buffered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/kv/auth.hpp"
#include "base/kv/mutual_proof.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/tree/frames/frames.hpp"

namespace horo::runtime::tree {

/// The key of one epoch's connections.
kv::Secret channel_key(const kv::Secret& secret, Epoch epoch);

/// Thread: owner.
class SealedChannel {
 public:
  enum class Side { connects, accepts };

  /// `nonce` is fresh; `version` is another than ours only in tests. `encryption` is what this end
  /// wants between ranks; frames of leaders are encrypted in either case.
  SealedChannel(Side side, const kv::Secret& key, const kv::Nonce& nonce,
                std::uint32_t version = kVersion, kv::Encryption encryption = kv::Encryption::off);

  /// How many bytes feed() takes now. During the handshake never more than its next message needs.
  std::size_t room() const;

  void feed(BytesView bytes);

  /// The next payload, or nothing until more is fed. After a failure the connection must be closed.
  /// Fails: protocol (malformed, or a frame that was changed or repeated), permission_denied
  /// (another secret, or no leader), version_mismatch, mismatch (only one end wants encryption).
  Result<std::optional<std::string>> next();

  /// The handshake is done: frames can be sent.
  bool open() const { return outgoing_.has_value(); }

  /// After open().
  void send(std::string_view payload);

  /// Bytes to be put on the wire.
  std::string_view output() const { return std::string_view(output_).substr(sent_); }

  /// `n` bytes of output() are sent.
  void sent(std::size_t n);

 private:
  Status shake_hands();
  void protect();
  BytesView unread() const;

  const Side side_;
  kv::MutualProof proof_;
  std::optional<kv::Seal> incoming_;
  std::optional<kv::Seal> outgoing_;
  std::string input_;
  std::size_t consumed_ = 0;
  std::string output_;
  std::size_t sent_ = 0;
};

}  // namespace horo::runtime::tree
