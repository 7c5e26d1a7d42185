// SPDX-License-Identifier: Apache-2.0
// Client of a job's key-value server, through which the ranks of a job find each other. It uses
// blocking sockets and no event loop, so that every process can have one. Values are bytes; a key
// is 1 to 1024 bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/deadline.hpp"
#include "base/kv/auth.hpp"
#include "base/result.hpp"

namespace horo::kv {

/// One authenticated connection. A call that times out while it waits for an answer leaves the
/// connection usable; the late answer is dropped. After peer_lost, io, protocol, or a deadline that
/// passed in the middle of sending, every further call fails with the same error, because it is
/// unknown what the server did.
///
/// Thread: one at a time; threads that wait for different keys need a client each.
/// Blocks: every call, at most until its deadline.
/// Fails: timed_out, peer_lost (server gone), protocol (the peer sent nonsense), io; and as each
/// call states.
class Client {
 public:
  /// `address` is host:port as in HORO_RENDEZVOUS. Both ends prove that they know `secret`.
  /// Fails: invalid_argument (address), not_found (host), unavailable (nothing listens),
  /// permission_denied (the secrets differ, or it is no key-value server), version_mismatch.
  static Result<Client> connect(std::string_view address, const Secret& secret, Deadline deadline);

  /// The IP addresses of both ends of the connection.
  std::string own_host() const;
  std::string server_host() const;

  struct Released {
    int descriptor;  ///< Non-blocking; the caller's.
    SealPair seals;  ///< For the bytes that follow.
  };

  /// Gives up the connection, for a service that begins as this one and continues with its own
  /// protocol.
  Released release() &&;

  ~Client();
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Creates or replaces the value. Fails: resource_exhausted (value too large, server full; names
  /// the limit).
  Status set(std::string_view key, std::string_view value, Deadline deadline);

  /// Waits until the key exists and returns its value. After a wait that was cancelled the
  /// connection stays usable, too. Fails: timed_out (names the key), cancelled.
  Result<std::string> get(std::string_view key, const WaitLimit& limit);

  /// As set() of `key` and then get() of `awaited`, with one message to the server. After a timeout
  /// the key is set, unless the error names the limit of a set().
  Result<std::string> set_then_get(std::string_view key, std::string_view value,
                                   std::string_view awaited, const WaitLimit& limit);

  /// Returns the value, or nothing if the key does not exist now.
  Result<std::optional<std::string>> find(std::string_view key, Deadline deadline);

  /// Returns once all `keys` exist at the same time. After a timeout it may take a second more to
  /// ask which keys do not exist; the error names the first of them and their number. Fails:
  /// timed_out; invalid_argument (too many keys).
  Status wait(std::span<const std::string> keys, Deadline deadline);

  /// Adds to a decimal number, 0 if the key does not exist, and returns the sum. Fails:
  /// invalid_argument (the value is no number, or the sum does not fit 64 bits).
  Result<std::int64_t> add(std::string_view key, std::int64_t delta, Deadline deadline);

  struct Swap {
    bool swapped = false;
    std::optional<std::string> value;  ///< The key's value after the call.
  };

  /// Sets the key if its value is `expected`; nullopt: if it does not exist.
  Result<Swap> compare_and_set(std::string_view key, std::optional<std::string_view> expected,
                               std::string_view desired, Deadline deadline);

  /// Removes the keys that exist, and returns their number.
  Result<std::int64_t> erase(std::span<const std::string> keys, Deadline deadline);

 private:
  class Connection;
  explicit Client(std::unique_ptr<Connection> connection);

  std::unique_ptr<Connection> connection_;
};

}  // namespace horo::kv
