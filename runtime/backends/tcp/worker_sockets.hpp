// SPDX-License-Identifier: Apache-2.0
// The connections of one worker to its peers. Workers share no connection, so one that waits never
// holds up another: the same worker of all ranks posts its messages in the same order, and a
// message that has come too early belongs to a later segment of this worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "runtime/backends/tcp/tcp_channel.hpp"
#include "runtime/backends/tcp/tcp_rails.hpp"

namespace horo::runtime {

/// The peers of a set, as all its workers know them. Thread: immutable while there are several
/// workers, but for what is atomic.
struct TcpPeers {
  kv::Secret secret{};
  kv::Encryption encryption = kv::Encryption::off;
  SetToken token{};
  int position = 0;
  std::vector<int> members;    ///< Rank in the job by position.
  std::vector<TcpRail> rails;  ///< This host's.
  /// By rail and position: where the peers listen.
  std::vector<std::vector<kv::Address>> addresses;
  std::vector<std::atomic<bool>> ended;  ///< By position: one of the peer's connections has ended.
  Duration timeout{};                    ///< For a silent peer. Zero: none.
  std::string_view patience = "HORO_GLOO_TIMEOUT";  ///< The setting that `timeout` comes from.
  std::function<bool()> lost;  ///< Whether a rank of the job was lost while they connect; or null.
  std::function<void(int socket, int rank)> watch;  ///< Watch a connection that is made.
  UniqueFd bell;  ///< An eventfd, which is never read: each ring wakes all workers.

  int rank_of(int peer) const { return members[static_cast<std::size_t>(peer)]; }

  bool has_ended(int peer) const { return ended[static_cast<std::size_t>(peer)].load(); }
};

/// Thread: its worker, except where it says any.
class WorkerSockets {
 public:
  /// Fails: io.
  static Result<std::unique_ptr<WorkerSockets>> make(TcpPeers& peers, std::uint32_t number);
  ~WorkerSockets();
  WorkerSockets(const WorkerSockets&) = delete;
  WorkerSockets& operator=(const WorkerSockets&) = delete;

  void send(TcpTransfer& transfer);
  void receive(TcpTransfer& transfer);

  /// Blocks: until the transfer is done. Fails: peer_lost, cancelled (interrupted).
  Status wait(const TcpTransfer& transfer);

  // -- Thread: any ------------------------------------------------------------------------------

  /// False: it has hung up.
  bool adopt(int peer, ProvenSocket socket);
  void wake() const;  ///< The peers' other workers, too.
  void interrupt();
  /// Tells all peers that nothing comes any more. After interrupt().
  void hang_up();

 private:
  WorkerSockets(TcpPeers& peers, std::uint32_t number, UniqueFd events);

  std::size_t rail() const { return number_ % peers_.rails.size(); }

  const kv::Address& address_of(int peer) const {
    return peers_.addresses[rail()][static_cast<std::size_t>(peer)];
  }

  std::string rail_text() const;

  TcpChannel& channel(int peer) { return channels_[static_cast<std::size_t>(peer)]; }

  void engage(int peer);
  void connect(int peer);
  void take_adopted();
  void advance_all();
  void advance(int peer);
  void note_socket(int peer);
  Duration retry(TimePoint now);
  void sleep(Duration limit);
  void forget_socket(int socket);
  std::string describe_silence(int peer);
  Failure lost(int peer) const;

  TcpPeers& peers_;
  const std::uint32_t number_;
  const UniqueFd events_;             ///< An epoll instance.
  std::vector<TcpChannel> channels_;  ///< By position.
  std::vector<int> busy_;             ///< Peers with messages that are not done.
  std::map<int, TimePoint> retries_;  ///< By peer: when to connect again.
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> has_adopted_{false};
  Mutex mutex_;
  std::vector<std::pair<int, ProvenSocket>> adopted_ HORO_GUARDED_BY(mutex_);
  std::set<int> open_ HORO_GUARDED_BY(mutex_);  ///< Sockets that hang_up() shuts down.
  bool hung_up_ HORO_GUARDED_BY(mutex_) = false;
};

}  // namespace horo::runtime
