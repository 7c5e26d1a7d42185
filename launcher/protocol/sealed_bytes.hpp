// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/kv/auth.hpp"
#include "base/result.hpp"

namespace horo::launcher::protocol {

/// Encrypts both directions of a byte stream over a network, in records of at most 64 KiB: length,
/// encrypted bytes, tag (docs/design/agent-protocol.md). One end of one connection. Thread: owner.
class SealedBytes {
 public:
  explicit SealedBytes(kv::SealPair seals) : seals_(std::move(seals)) {}

  /// Appends the records of `bytes` to `to`.
  void wrap(std::string_view bytes, std::string& to);

  /// Takes what was received, and returns the bytes of all records that are whole now. After a
  /// failure the connection must be closed. Fails: protocol (a record that was changed, repeated or
  /// left out).
  Result<std::string> unwrap(std::string_view received);

 private:
  kv::SealPair seals_;
  std::string received_;  ///< The part of a record.
};

}  // namespace horo::launcher::protocol
