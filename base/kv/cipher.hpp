// SPDX-License-Identifier: Apache-2.0
// Encryption of one connection: AES-256-GCM by OpenSSL's libcrypto. A process loads that library
// when it first has to encrypt; nothing else needs it.
// docs/decisions/0014-encryption-between-hosts.md has the reasons.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/kv/auth.hpp"
#include "base/result.hpp"

namespace horo::kv {

/// Whether this process can encrypt. Thread: any. Fails: unavailable (names the library and its
/// package).
Status can_encrypt();

/// The library's name and version in its own words. Thread: any. Fails: as can_encrypt().
Result<std::string> cipher_library();

/// The records of one direction of one connection. Each has a number of its own, which is never
/// sent: a record that was changed, cut, repeated, left out, moved or taken from another connection
/// does not open. Erases its key when destroyed. Thread: owner.
class RecordCipher {
 public:
  static constexpr std::size_t kTagBytes = 16;
  /// After so many records of 64 KiB one key has encrypted 1 TiB, far below GCM's limit. Both ends
  /// derive the next key then.
  static constexpr std::uint64_t kRecordsPerKey = std::uint64_t{1} << 24U;

  /// `secret` is the connection's, as the handshake has used it. Fails: unavailable.
  static Result<RecordCipher> make(const Secret& secret, const Handshake& handshake,
                                   Direction direction,
                                   std::uint64_t records_per_key = kRecordsPerKey);
  ~RecordCipher();
  RecordCipher(RecordCipher&& other) noexcept;
  RecordCipher& operator=(RecordCipher&& other) noexcept;
  RecordCipher(const RecordCipher&) = delete;
  RecordCipher& operator=(const RecordCipher&) = delete;

  /// Encrypts the next record. `out` has room for it and kTagBytes more. False: libcrypto fails.
  bool seal(BytesView plain, std::uint8_t* out);

  /// Decrypts the next record where it stands. False: it is not the next record; the connection
  /// must be closed, and the bytes mean nothing.
  bool open(std::span<std::uint8_t> bytes, BytesView tag);

 private:
  struct Context;

  RecordCipher(std::unique_ptr<Context> context, const Secret& key, std::uint64_t records_per_key);
  bool begin(int encrypts);

  std::unique_ptr<Context> context_;
  Secret key_;
  std::uint64_t records_per_key_;
  std::uint64_t records_ = 0;
  bool ready_ = false;  ///< The context has `key_`.
};

/// The ciphers of one end of a connection.
struct CipherPair {
  RecordCipher outgoing;
  RecordCipher incoming;

  /// Fails: unavailable.
  static Result<std::unique_ptr<CipherPair>> make(const Secret& secret, const Handshake& handshake,
                                                  Direction outgoing);
};

}  // namespace horo::kv
