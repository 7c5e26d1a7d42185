// SPDX-License-Identifier: Apache-2.0
// The members of one process set, as a backend between processes needs them to connect.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/kv/auth.hpp"
#include "runtime/backends/rendezvous_store.hpp"

namespace horo::runtime {

/// Something that the backends of one session share, such as a port at which they listen.
class SharedByBackends {
 public:
  virtual ~SharedByBackends() = default;
};

/// Each process set takes two slots: for its members, and for those that exchange data between
/// hosts.
inline constexpr int kMostSlots = 512;

/// One process set and this rank's place in it. A position is an index into the set; `members` and
/// `hosts` have one row per position.
struct Communicator {
  int position = 0;
  std::vector<int> members;  ///< Ranks in the job. Under MPI these are the ranks in MPI_COMM_WORLD.
  std::vector<int> hosts;    ///< Index of its host; empty: a host for each. In a flat ring
                             ///< ranks of one host should be neighbours.
  std::string name;          ///< Different for every set and epoch, the same on all members.
  int slot = 0;              ///< The same on all members. Two communicators that share two ranks
                             ///< and exist at a time have different ones, from 0 to kMostSlots - 1.
                             ///< All ranks of the job have 0.
  bool starting = true;  ///< The job starts: nothing of this process uses a backend's library yet.
  RendezvousStore* meeting = nullptr;  ///< Used only while the backend is made.
  /// Whether a rank of the job was lost, so that there is no use in waiting; null: nobody knows.
  /// Used only while the backend is made, by the thread that makes it.
  std::function<bool()> lost;
  kv::Secret secret{};                              ///< The job's.
  kv::Encryption encryption = kv::Encryption::off;  ///< It covers all bytes between two ranks.
  /// A place for what the session's backends share; null: this backend has its own. The session's
  /// first communicator has all members that any later one has.
  std::shared_ptr<SharedByBackends>* shared = nullptr;
  std::string interface;     ///< Network interface to use; empty: chosen by routability. Several,
                             ///< separated by commas, are used at once where the backend can.
  std::string address;       ///< Own address to listen on; empty: that of the interface.
  Duration start_timeout{};  ///< Time limit for all members to connect.
  Duration timeout{};        ///< Time limit for a peer that is silent in the middle of a bucket.
  bool rank_order = false;   ///< Reductions add in rank order: the same bits on every run.
  bool mpi_threads = true;   ///< False: initialise MPI without support for threads.
  int device = -1;           ///< Accelerator; -1: none.
  std::function<void()> notify;  ///< Called when progress() has something to see. Thread: any.

  int size() const { return static_cast<int>(members.size()); }

  int host_of(int position_) const {
    return hosts.empty() ? position_ : hosts[static_cast<std::size_t>(position_)];
  }
};

/// Fails: invalid_argument (no members, a position outside, hosts of another length).
Status check(const Communicator& communicator);

/// Whether any two members are on one host.
bool shares_hosts(const Communicator& communicator);

}  // namespace horo::runtime
