// SPDX-License-Identifier: Apache-2.0
// A running server, and clients that send the protocol byte by byte.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/deadline.hpp"
#include "base/kv/client.hpp"
#include "base/kv/kv_messages.hpp"
#include "base/kv/server/server.hpp"

namespace horo::test {

/// A time limit for steps that should take no time; not a measurement.
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

  /// Calls `task` with the server, in the server's thread, and waits for it.
  void with_server(const std::function<void(kv::Server&)>& task);

  /// Returns when `wanted` is true for the counts, or after soon().
  bool reaches(const std::function<bool(const kv::ServerCounts&)>& wanted);

 private:
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<kv::Server> server_;
  std::string address_;
  std::thread thread_;
};

/// A blocking socket that sends any bytes.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address);

  ~RawPeer() { close(); }

  RawPeer(RawPeer&& other) noexcept;
  RawPeer& operator=(RawPeer&&) = delete;
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  void close();

  /// Returns false when the other side has closed.
  bool send(std::string_view bytes) const;

  /// Receives `n` bytes, or fewer when the other side closes before.
  std::string receive(std::size_t n) const;

  /// Receives everything up to the end of the stream.
  std::string receive_rest() const { return receive(std::string::npos); }

  /// Does the whole handshake; `sent` gets the bytes that were sent. False when refused.
  bool shake_hands(const kv::Secret& secret);

  /// Returns the sealed frame of a request, after shake_hands.
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
