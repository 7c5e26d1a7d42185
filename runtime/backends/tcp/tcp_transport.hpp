// SPDX-License-Identifier: Apache-2.0
// Messages between the ranks of a set over Horo's own TCP connections.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "runtime/backends/flat/transport.hpp"
#include "runtime/backends/tcp/tcp_endpoint.hpp"
#include "runtime/backends/tcp/worker_sockets.hpp"

namespace horo::runtime {

/// Connections are made when a message first needs them.
class TcpTransport final : public Transport, public TcpSet {
 public:
  /// A connection for each worker and peer, but in large sets fewer, because a process may have
  /// only 1,024 descriptors. Each rail has the same number of them.
  static constexpr int workers_of(int ranks, int rails = 1) {
    const int least = ranks <= 128 ? 3 : 1;
    return (least + rails - 1) / rails * rails;
  }

  /// Peers may connect from now on; take_addresses() follows. Fails: io.
  static Result<std::unique_ptr<TcpTransport>> make(std::shared_ptr<TcpEndpoint> endpoint,
                                                    const Communicator& communicator,
                                                    std::uint32_t workers);
  ~TcpTransport() override;

  /// Takes the members' addresses that the endpoint knows, one for each rail. Before any message to
  /// them.
  void take_addresses();

  /// Until end_start() messages wait for `limit` at most, without one if it is zero, and only while
  /// no rank is `lost`, which may be null. Thread: that of the messages.
  void begin_start(Duration limit, std::function<bool()> lost);
  /// From now on messages wait for a silent peer for `timeout`; zero: without limit.
  void end_start(Duration timeout);

  Result<std::unique_ptr<PendingMessage>> send(const TransportMessage& message) override;
  Result<std::unique_ptr<PendingMessage>> receive(const TransportMessage& message) override;
  void interrupt() override;
  void hang_up() override;

  bool adopt(int rank, std::uint32_t worker, ProvenSocket socket) override;
  void peer_closed(int rank) override;

 private:
  class PostedMessage;

  TcpTransport(std::shared_ptr<TcpEndpoint> endpoint, const Communicator& communicator);

  WorkerSockets& sockets_of(const TransportMessage& message) { return *workers_[message.worker]; }

  const std::shared_ptr<TcpEndpoint> endpoint_;
  TcpPeers peers_;
  std::map<int, int> positions_;                     ///< By rank in the job.
  std::set<std::pair<int, std::uint32_t>> adopted_;  ///< The ranks and workers that have connected.
  std::vector<std::unique_ptr<WorkerSockets>> workers_;
};

}  // namespace horo::runtime
