// SPDX-License-Identifier: Apache-2.0
// The key-value server of one job: where ranks store their addresses and wait for each other's. It
// is in the launcher, or in rank 0 when there is none. A launcher needs two lines:
//
//   HORO_TRY(auto rendezvous, Server::start(loop, spec.secret, {}));
//   identity.rendezvous = rendezvous->address();   // HORO_RENDEZVOUS of every rank
//
// with the same secret in each AgentSpec, from make_secret(). The object must live as long as the
// ranks. A peer without the secret gets 32 random bytes, and then its connection is closed; it
// cannot keep a descriptor, a timer or memory for longer than the handshake may take.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/kv/address.hpp"
#include "base/kv/auth.hpp"
#include "base/kv/server/key_value_store.hpp"
#include "base/loop/loop.hpp"
#include "base/result.hpp"

namespace horo::kv {

struct ServerOptions {
  /// Where to listen: IP addresses of this machine; port 0: a free one. "0.0.0.0" and "::" are all.
  std::vector<Address> listen = {{"127.0.0.1", 0}};
  StoreLimits limits;

  /// The most connections that have not proven to know the secret. When there are as many, the
  /// oldest is closed as soon as it is `crowded_timeout` old, so that a flood delays new clients
  /// but does not exclude them.
  std::size_t unauthenticated = 512;
  Duration handshake_timeout = std::chrono::seconds(5);
  Duration crowded_timeout = std::chrono::seconds(1);

  /// A client that reads nothing of its answer for this long is closed.
  Duration write_timeout = std::chrono::seconds(30);
};

struct ServerCounts {
  std::size_t clients = 0;          ///< Authenticated connections now.
  std::size_t unauthenticated = 0;  ///< Other connections now.
  std::size_t waiting = 0;          ///< Clients that wait for a key now.
  std::size_t refused = 0;  ///< Connections closed for what they sent or did not send; only grows.
  std::size_t keys = 0;     ///< Keys in the store now.
};

/// Everything happens on the loop; destroying it closes all connections.
/// Thread: the loop's. Blocks: no.
class Server {
 public:
  /// `loop` outlives the server.
  /// Fails: invalid_argument (no IP address, none given), unavailable (port taken, no descriptors),
  /// io.
  static Result<std::unique_ptr<Server>> start(Loop& loop, const Secret& secret,
                                               ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// host:port of the first listener, as Client::connect takes it.
  std::string address() const;

  /// All listeners, in the order of the options.
  std::vector<Address> addresses() const;

  ServerCounts counts() const;

  /// Listens at one more address, and returns it with the actual port. The addresses before stay
  /// the first ones. An address that has a listener already is returned. Fails: as start.
  Result<Address> listen_also(const Address& address);

  using SetHandler = std::function<void(std::string_view key, std::string_view value)>;

  /// From now on, what clients set under keys that begin with `prefix` is not stored. The client's
  /// answer is a success, and `handler` gets key and value in a later turn of the loop. It may use
  /// the server, and destroy it. The first prefix that fits counts.
  void intercept(std::string prefix, SetHandler handler);

  /// Stores a value as a client would, and answers the clients that wait for the key.
  /// Fails: resource_exhausted (names the limit).
  Status set(std::string_view key, std::string value);

  /// Removes the key if it exists.
  void erase(const std::string& key);

  /// Removes all keys for which `unwanted` is true. Looks at every key of the store.
  void erase_if(const std::function<bool(std::string_view key)>& unwanted);

 private:
  class Impl;
  explicit Server(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace horo::kv
