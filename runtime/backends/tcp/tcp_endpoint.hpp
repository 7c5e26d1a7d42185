// SPDX-License-Identifier: Apache-2.0
// The one TCP port of a rank, at which the other ranks connect for all of its process sets.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/kv/address.hpp"
#include "base/kv/auth.hpp"
#include "base/kv/server/listener.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "runtime/backends/communicator.hpp"
#include "runtime/backends/tcp/tcp_handshake.hpp"
#include "runtime/backends/tcp/tcp_rails.hpp"
#include "runtime/backends/tcp/tcp_wire.hpp"

namespace horo::runtime {

/// A set that gets its connections from an endpoint. Thread: the endpoint's. Blocks: no. It must
/// not call the endpoint.
class TcpSet {
 public:
  virtual ~TcpSet() = default;
  /// Takes a connection from `rank` whose other side has proven what it must. False: the set has no
  /// use for it and has closed it.
  virtual bool adopt(int rank, std::uint32_t worker, ProvenSocket socket) = 0;
  /// A connection that was watched has ended.
  virtual void peer_closed(int rank) = 0;
};

/// Owns a thread that accepts connections and has each prove its identity. One that does not is
/// closed after 5 s, or earlier when kMostStrangers others have come after it, so a flood of
/// strangers costs bounded memory, and delays ranks without excluding them.
class TcpEndpoint final : public SharedByBackends {
 public:
  static constexpr std::size_t kMostStrangers = 256;

  /// Listens as rank `me` of the job at the addresses of all rails, at a port that is free at each.
  /// Fails: invalid_argument, unavailable (also: it cannot encrypt), io.
  static Result<std::shared_ptr<TcpEndpoint>> open(std::vector<TcpRail> rails, int me,
                                                   const kv::Secret& secret,
                                                   kv::Encryption encryption = kv::Encryption::off);
  /// The same at one address, a number.
  static Result<std::shared_ptr<TcpEndpoint>> open(const std::string& address, int me,
                                                   const kv::Secret& secret,
                                                   kv::Encryption encryption = kv::Encryption::off);
  ~TcpEndpoint() override;

  int me() const { return me_; }

  const kv::Secret& secret() const { return secret_; }

  /// It is the same for all connections.
  kv::Encryption encryption() const { return encryption_; }

  /// That of the first rail; the port is the same on all.
  const kv::Address& address() const { return listeners_.front().address(); }

  TcpContact contact() const;

  /// At least one.
  const std::vector<TcpRail>& rails() const { return rails_; }

  /// Where ranks listen. Thread: one at a time.
  std::map<int, TcpContact>& contacts() { return contacts_; }

  /// From now on `set`, which outlives its place here, gets its connections, those that have come
  /// already included. Thread: any.
  void add(const SetToken& token, TcpSet& set);

  /// Returns when no call of the set is under way. Thread: any.
  void remove(const SetToken& token);

  /// Tells the set of `edge` when this connection to `rank` ends. Thread: any.
  void watch(int socket, const SetToken& token, int rank);

  /// Connections that have not proven anything, now. Thread: any.
  std::size_t strangers() const;

  /// Connections whose end is told to a set. Thread: any.
  std::size_t watched() const;

 private:
  struct Stranger {
    UniqueFd socket;
    TcpHandshake handshake;
    TimePoint since;
  };

  struct Parked {
    ProvenSocket socket;
    TcpEdge edge;
    TimePoint since;
  };

  struct Watched {
    SetToken set{};
    int rank = 0;
  };

  TcpEndpoint(std::vector<TcpRail> rails, std::vector<kv::Listener> listeners, UniqueFd events,
              UniqueFd stop, int me, const kv::Secret& secret, kv::Encryption encryption);
  void run();
  void handle(std::uint64_t id) HORO_REQUIRES(mutex_);
  void accept_all() HORO_REQUIRES(mutex_);
  void accept_some(kv::Listener& listener) HORO_REQUIRES(mutex_);
  void listen_for(std::uint32_t events) HORO_REQUIRES(mutex_);
  void take_in(int socket) HORO_REQUIRES(mutex_);
  void pause_accepting(const Error& why) HORO_REQUIRES(mutex_);
  void resume_accepting() HORO_REQUIRES(mutex_);
  void hear(std::uint64_t id) HORO_REQUIRES(mutex_);
  Status read_from(Stranger& stranger) HORO_REQUIRES(mutex_);
  void welcome(ProvenSocket socket, const TcpEdge& edge) HORO_REQUIRES(mutex_);
  std::uint64_t watch_locked(int socket, const SetToken& token, int rank) HORO_REQUIRES(mutex_);
  void drop_old(TimePoint now) HORO_REQUIRES(mutex_);
  Duration longest_sleep(TimePoint now) const HORO_REQUIRES(mutex_);

  const std::vector<TcpRail> rails_;
  std::vector<kv::Listener> listeners_;  ///< By rail.
  const UniqueFd events_;                ///< An epoll instance.
  const UniqueFd stop_;                  ///< An eventfd.
  const int me_;
  const kv::Secret secret_;
  const kv::Encryption encryption_;
  std::map<int, TcpContact> contacts_;
  mutable Mutex mutex_;
  std::uint64_t next_id_ HORO_GUARDED_BY(mutex_) = 2;
  std::map<std::uint64_t, Stranger> strangers_ HORO_GUARDED_BY(mutex_);  ///< The oldest is first.
  std::deque<Parked> parked_ HORO_GUARDED_BY(mutex_);  ///< Proven, but of no set yet.
  std::map<std::uint64_t, Watched> watched_ HORO_GUARDED_BY(mutex_);
  std::map<SetToken, TcpSet*> sets_ HORO_GUARDED_BY(mutex_);
  std::optional<TimePoint> paused_ HORO_GUARDED_BY(mutex_);  ///< Accepts again then.
  std::string warned_ HORO_GUARDED_BY(mutex_);               ///< The error of the last warning.
  std::thread thread_;
};

}  // namespace horo::runtime
