// SPDX-License-Identifier: Apache-2.0
// Who talks to whom: what a backend between processes is made from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "runtime/backends/meeting.hpp"

namespace horo::runtime {

/// One process set and this rank's place in it. A position counts in the set; `members` and `hosts`
/// have one row per position.
struct Communicator {
  int position = 0;
  std::vector<int> members;  ///< Rank in the job. Under MPI that is the rank in MPI_COMM_WORLD.
  std::vector<int> hosts;    ///< Index of its host; empty: a host for each. In a flat ring
                             ///< ranks of one host should be neighbours.
  std::string name;          ///< Different for every set and epoch, the same on all members.
  MeetingPlace* meeting = nullptr;  ///< Used while the backend is made, and never afterwards.
  std::string interface;            ///< Network interface to use; empty: chosen by routability.
  std::string address;              ///< Own address to listen on; empty: that of the interface.
  Duration start_timeout{};         ///< For the meeting.
  Duration timeout{};               ///< For a peer that is silent in the middle of a bucket.
  bool rank_order = false;          ///< Reductions add in rank order: the same bits on every run.
  bool mpi_threads = true;          ///< False: initialise MPI without support for threads.
  int device = -1;                  ///< Accelerator; -1: none.
  std::function<void()> notify;     ///< Called when progress() has something to see. Thread: any.

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
