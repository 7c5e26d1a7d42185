// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job learn where each of them listens.
//
// The ranks form a tree. Each rank puts its own addresses, one per rail, into the store, and one
// that has ranks below it, besides, the addresses of its whole subtree, once it has read those of
// its children. So every record crosses the store a few times, whatever the number of ranks. The
// root, which then knows all, sends the table to its children over the first connections of the
// set, and they send it on.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/kv/address.hpp"
#include "base/result.hpp"
#include "base/tree/run_tree.hpp"
#include "runtime/backends/flat/transport.hpp"
#include "runtime/backends/tcp/tcp_endpoint.hpp"

namespace horo::runtime {

/// The endpoint that the communicator's session has already, or a new one, at the address or
/// interface that the communicator names, else at one that the others reach. Blocks: as
/// reachable_address(). Fails: invalid_argument (no such address or interface), unavailable, io,
/// and as reachable_address().
Result<std::shared_ptr<TcpEndpoint>> endpoint_of(const Communicator& communicator);

/// A rank's part in the exchange of addresses. Thread: owner. Blocks: each call.
class ContactExchange {
 public:
  static constexpr int kRadix = 8;

  /// Rank in the job by position; both outlive this. `name` is the set's.
  ContactExchange(const std::vector<int>& members, std::string name, int position,
                  RendezvousStore& store);

  /// Hands this rank's address up, with those of the subtree. Blocks: until all ranks below have
  /// come, at most until the deadline. Fails: timed_out (names the key of the rank that is
  /// missing), protocol, invalid_argument (a rank below
  /// listens at another number of interfaces), and as the store.
  Status gather(TcpContact own, Deadline deadline);

  /// How long a rank waits in spread(): longer than any rank in gather(), so that the error that
  /// comes first names the rank that is missing.
  Duration spread_limit(Deadline deadline) const;

  /// Takes the table from the parent and sends it to the children, whose addresses `transport` has.
  /// Fails: protocol, invalid_argument as gather(), and as the transport.
  Status spread(Transport& transport);

  /// By rank in the job: after gather() those of the subtree, after spread() all.
  std::map<int, TcpContact> contacts() const;

 private:
  Result<std::string> receive_table(Transport& transport) const;
  Status put(int first, int end, std::string_view table);
  std::string key(std::string_view what, int node) const;
  int position_of(int node) const;

  int rank_of(int node) const { return members_[static_cast<std::size_t>(position_of(node))]; }

  const std::vector<int>& members_;
  const std::string name_;
  RendezvousStore& store_;
  /// By node; empty: they are the same. The nodes are the ranks, ascending, because the lower rank
  /// of two connects.
  const std::vector<int> positions_;
  const TreePlace place_;
  std::size_t rails_ = 0;              ///< How many each rank has.
  int first_ = 0;                      ///< The node of the first address.
  std::vector<TcpContact> addresses_;  ///< The others follow; empty: not known yet.
};

/// One line for each rank: "HOST:PORT", followed by " HOST" for each further interface, or ":PORT"
/// where the hosts are those of the line before.
std::string encode_contacts(std::span<const TcpContact> contacts);

/// Fails: protocol.
Result<std::vector<TcpContact>> decode_contacts(std::string_view text);

}  // namespace horo::runtime
