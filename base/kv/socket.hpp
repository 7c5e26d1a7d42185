// SPDX-License-Identifier: Apache-2.0
// A TCP connection with deadlines, for the client of the key-value server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/deadline.hpp"
#include "base/kv/address.hpp"
#include "base/result.hpp"

namespace horo::kv {

/// Owns a connected, close-on-exec descriptor. Calls that a signal interrupts are repeated. Thread:
/// owner.
class Socket {
 public:
  /// Tries each address of the name. Blocks: until `deadline`, but the system's resolver may take
  /// longer. Fails: timed_out, not_found (no such host), unavailable
  /// (refused, unreachable), io.
  static Result<Socket> connect(const Address& address, Deadline deadline);

  ~Socket();

  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool is_open() const { return fd_ >= 0; }

  void close();

  /// The IP addresses of both ends; empty when the connection is gone.
  std::string own_host() const;
  std::string peer_host() const;

  /// Gives the descriptor, non-blocking, to the caller.
  int release() { return std::exchange(fd_, -1); }

  /// Sends all of `bytes`. After a failure the peer may have any part of them. Fails: timed_out,
  /// peer_lost, io.
  Status send(std::span<const std::uint8_t> bytes, Deadline deadline);

  /// Receives at least one byte, or returns 0 at the end of the stream. Fails: timed_out,
  /// cancelled, peer_lost, io.
  Result<std::size_t> receive(std::span<std::uint8_t> buffer, const WaitLimit& limit);

 private:
  explicit Socket(int fd) : fd_(fd) {}

  Status wait_for(short events, const WaitLimit& limit) const;

  int fd_;
};

}  // namespace horo::kv
