// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job meet, whoever started them: `horo run`, mpirun, srun, torchrun, or a shell
// with a few variables. docs/design/standalone.md has the steps and the bytes.
#pragma once

#include <memory>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "runtime/bootstrap/identity.hpp"
#include "runtime/bootstrap/meeting.hpp"

namespace horo::runtime::bootstrap {

/// One for the life of the process; it remembers between epochs what can be had only once.
/// Thread: one at a time.
class Bootstrap {
 public:
  Bootstrap();
  ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  /// Meets the other ranks for a new epoch, each time with a fresh board. Blocks.
  /// Fails: invalid_argument (the environment contradicts itself), timed_out (naming who has not
  /// come), peer_lost, mismatch, version_mismatch, permission_denied, unsupported (more hosts than
  /// one and nothing by which they could find each other), unavailable, io.
  Result<Meeting> meet(const Lookup& environment, const Deadline& deadline);

  /// Before the process ends: stops the store's thread, if it is here. Other ranks keep what they
  /// have.
  void retire();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace horo::runtime::bootstrap
