// SPDX-License-Identifier: Apache-2.0
// Moves messages between their memory and the socket of one connection, as they are or encrypted.
#pragma once

#include <cstddef>
#include <memory>
#include <sys/types.h>

#include "base/kv/cipher.hpp"
#include "base/unique_fd.hpp"
#include "runtime/backends/tcp/tcp_handshake.hpp"
#include "runtime/backends/tcp/tcp_message.hpp"

namespace horo::runtime {

/// The result of one call of the system.
struct TcpMove {
  ssize_t bytes = 0;  ///< On the socket, as sendmsg() and readv() return it.
  bool all = false;   ///< As many as were asked for. After fewer the socket is empty, or full.
  int error = 0;      ///< If `bytes` is negative. EBADMSG: what has come is not what was sent.
};

/// Thread: owner. Blocks: no, because its sockets do not.
class TcpWire {
 public:
  virtual ~TcpWire() = default;

  /// Sends a part of the message, which stays the same one until it is done.
  virtual TcpMove write(int socket, TcpTransfer& transfer) = 0;

  /// Receives a part of the message, which stays the same one until it is done.
  virtual TcpMove read(int socket, TcpTransfer& transfer) = 0;

  /// A part of the message that is due has come.
  virtual bool has_begun(const TcpTransfer& transfer) const = 0;

  /// The header that has come with the message, once `moved` counts it.
  const TcpHeader& header() const { return came_; }

 protected:
  TcpHeader came_{};
};

/// A connection whose other end has proven that it is the right rank.
struct ProvenSocket {
  UniqueFd socket;
  std::unique_ptr<TcpWire> wire;
};

/// Messages cross as they are.
std::unique_ptr<TcpWire> plain_wire();

/// The header is a record, and each 64 KiB of the message are one. A record is encrypted and has a
/// tag behind it. Their lengths are not sent: both sides know the message that is due.
std::unique_ptr<TcpWire> encrypted_wire(std::unique_ptr<kv::CipherPair> ciphers);

/// The wire of a connection whose handshake is open. Fails: unavailable.
Result<std::unique_ptr<TcpWire>> wire_after(const TcpHandshake& handshake);

}  // namespace horo::runtime
