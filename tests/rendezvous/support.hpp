// SPDX-License-Identifier: Apache-2.0
// A running server, and peers that speak the protocol byte by byte.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/deadline.hpp"
#include "base/kv/client.hpp"
#include "base/kv/server/server.hpp"
#include "base/kv/wire.hpp"

namespace horo::test {

/// A safety net for what must happen at once; never a measurement.
inline Deadline soon() {
  return Deadline::in(SteadyClock::instance(), std::chrono::seconds(30));
}

inline Deadline in_moments() {
  return Deadline::in(SteadyClock::instance(), std::chrono::milliseconds(20));
}

/// The server of one job on a loop with its own thread.
class RunningServer {
 public:
  explicit RunningServer(kv::ServerOptions options = {});
  ~RunningServer();
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  const kv::Secret secret;

  std::string address() const { return address_; }

  kv::Client client() const;
  kv::ServerCounts counts();

  /// Returns when `wanted` holds for the counts; gives up after soon().
  bool reaches(const std::function<bool(const kv::ServerCounts&)>& wanted);

 private:
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<kv::Server> server_;
  std::string address_;
  std::thread thread_;
};

/// A blocking socket without manners.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address);

  ~RawPeer() { close(); }

  RawPeer(RawPeer&& other) noexcept;
  RawPeer& operator=(RawPeer&&) = delete;
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  void close();

  /// False when the other side has closed.
  bool send(std::string_view bytes) const;

  /// Exactly `n` bytes, or fewer when the other side closes before.
  std::string receive(std::size_t n) const;

  /// Everything up to the end of the stream.
  std::string receive_rest() const { return receive(std::string::npos); }

  /// The whole handshake; the bytes that were sent are in `sent`. False when refused.
  bool shake_hands(const kv::Secret& secret);

  /// The sealed frame of a request, after shake_hands.
  std::string frame(const kv::Request& request);
  std::optional<kv::Response> response();

  std::string sent;
  kv::Handshake handshake;

 private:
  int fd_ = -1;
  std::optional<kv::Seal> outgoing_;
  std::optional<kv::Seal> incoming_;
};

}  // namespace horo::test
