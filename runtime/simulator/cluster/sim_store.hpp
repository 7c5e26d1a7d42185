// SPDX-License-Identifier: Apache-2.0
// The job's key-value store in a simulation: the real table of keys, and requests with the sizes
// that the real protocol gives them, over the virtual network to a server that handles one at a
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/kv/kv_messages.hpp"
#include "base/kv/server/key_value_store.hpp"
#include "runtime/backends/rendezvous_store.hpp"
#include "runtime/sets/set_arrival.hpp"
#include "runtime/simulator/cluster/fiber.hpp"
#include "runtime/simulator/network.hpp"

namespace horo::runtime::sim {

struct StoreCounters {
  std::uint64_t requests = 0;
  std::uint64_t bytes_in = 0;   ///< Frames, with length and tag, and handshakes.
  std::uint64_t bytes_out = 0;  ///< As bytes_in.
  std::size_t most_keys = 0;
  Duration busy{};  ///< Time that the server spent on requests.
};

/// Thread: owner.
class SimStore {
 public:
  /// The server runs on `host`.
  SimStore(Network& network, int host) : network_(network), host_(host) {}

  const StoreCounters& counters() const { return counters_; }

  const kv::KeyValueStore& table() const { return table_; }

  /// Called by a fiber on `from`: it pauses until the answer has come.
  kv::Response call(int from, kv::Request request);

  /// As call(), after a request in the same message whose answer nobody waits for.
  kv::Response call_after(int from, kv::Request first, kv::Request request);

  /// A request from `from` whose answer nobody waits for.
  void send(int from, kv::Request request);

  /// As kv::Server::intercept(): values set under the prefix are handed over and not stored.
  void intercept(std::string prefix, std::function<void(std::string_view value)> handler);

  /// The server sets a key itself. Fibers that wait for the key go on.
  void set(const std::string& key, std::string value);

  /// Called by a fiber: the two round trips of the handshake.
  void connect(int from);

  /// The server's process handles one more message, of the store or of something else. Returns when
  /// that will be done.
  TimePoint work(std::size_t bytes);

 private:
  struct Waiting {
    int from = 0;
    kv::Request request;
    kv::Response* response = nullptr;  ///< Null: nobody waits.
    Fiber* fiber = nullptr;
  };

  void request(Waiting call);

  void handle(Waiting call);
  void answer(const Waiting& call, kv::Response response, std::size_t value_bytes);
  void wake(const std::string& key);
  Network& network_;
  const int host_;
  kv::KeyValueStore table_{kv::StoreLimits{}};
  std::map<std::string, std::vector<Waiting>, std::less<>> waiting_;
  std::string intercepted_;  ///< A prefix of keys; empty: none.
  std::function<void(std::string_view value)> handler_;
  TimePoint busy_until_{};
  StoreCounters counters_;
};

/// One rank's access to it.
class SimStoreClient final : public RendezvousStore, public ArrivalStore {
 public:
  SimStoreClient(SimStore& store, int host) : store_(store), host_(host) {}

  Status set(std::string_view key, std::string_view value, Deadline deadline) override;
  Result<std::string> get(std::string_view key, Deadline deadline) override;

  Result<std::int64_t> add(std::string_view key, std::int64_t delta, Deadline deadline) override;
  Result<std::int64_t> erase(std::span<const std::string> keys, Deadline deadline) override;

  /// The keys that this client has set.
  const std::vector<std::string>& own() const { return own_; }

 private:
  SimStore& store_;
  const int host_;
  std::vector<std::string> own_;
};

}  // namespace horo::runtime::sim
