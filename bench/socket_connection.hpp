// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.hpp"
#include "bench/peer_connection.hpp"

namespace horo::bench {

/// A blocking TCP socket and nothing else: the least that a transport can cost, with the kernel's
/// copy of what is sent (MSG_ZEROCOPY off) or without it (on). Thread: owner.
class SocketConnection final : public PeerConnection {
 public:
  enum class Sending { copies, zero_copy };

  /// The process at `listens` waits for the other one, which finds its port in `directory`.
  static Result<std::unique_ptr<PeerConnection>> make(Sending sending, const std::string& address,
                                                      const std::string& directory, bool listens);
  /// Tells on standard error for how many calls the kernel has copied the bytes nevertheless.
  ~SocketConnection() override;
  SocketConnection(const SocketConnection&) = delete;
  SocketConnection& operator=(const SocketConnection&) = delete;

  Status send(std::span<std::byte> message) override;
  Status receive(std::span<std::byte> message) override;

 private:
  SocketConnection(UniqueFd socket, Sending sending);

  Status await_release();
  Status read_releases();

  const UniqueFd socket_;
  const Sending sending_;
  std::uint64_t calls_ = 0;     ///< Made with zero_copy.
  std::uint64_t released_ = 0;  ///< Calls whose memory the kernel no longer reads.
  std::uint64_t copied_ = 0;    ///< Released calls whose bytes the kernel has copied.
};

}  // namespace horo::bench
