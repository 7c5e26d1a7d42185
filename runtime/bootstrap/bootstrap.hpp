// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job find each other, whatever started them: `horo run`, mpirun, srun,
// torchrun, or a shell with a few variables. docs/design/standalone.md has the steps and the bytes.
#pragma once

#include <memory>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "runtime/bootstrap/identity/identity.hpp"
#include "runtime/bootstrap/meeting/meeting.hpp"

namespace horo::runtime::bootstrap {

struct MeetLimits {
  Deadline deadline;                                   ///< For all ranks to come.
  Duration release_timeout = std::chrono::seconds(1);  ///< As the knob.

  // For a worker of an elastic job, in place of `deadline`:
  Duration membership = std::chrono::minutes(10);     ///< For the launcher to answer a survivor.
  Duration start_timeout = std::chrono::seconds(30);  ///< Then for all its members to come.
};

/// One object for the life of the process; it keeps between epochs what can be found only once.
/// Thread: one at a time.
class Bootstrap {
 public:
  Bootstrap();
  ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  /// Meets the other ranks for a new epoch, each time with a fresh board. Blocks.
  /// Fails: invalid_argument (the environment contradicts itself), timed_out (names the ranks
  /// that are missing), peer_lost, mismatch, version_mismatch, permission_denied, unsupported (more
  /// hosts than one and nothing by which they could find each other), unavailable, io; in an
  /// elastic job also removed (this process is to end) and cancelled (this generation is given up).
  Result<Meeting> meet(const Lookup& environment, const MeetLimits& limits);

  /// A worker of an elastic job has joined the others of this generation, and says so the next time
  /// it asks for its place.
  void enter(Epoch generation);

  /// Tells the launcher of an elastic job that the training goes on in the generation that this
  /// worker has entered last: how long it stood still (not negative), and how many steps are done
  /// again (-1: unknown). Blocks. Fails: invalid_argument (no such generation), and as
  /// tell_resumed.
  Status resumed(Duration stood_still, std::int64_t repeated, const Deadline& deadline);

  /// Before the process ends: stops the store's thread, if it runs here. Does not affect epochs
  /// that other ranks are in.
  void retire();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace horo::runtime::bootstrap
