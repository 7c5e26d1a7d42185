// SPDX-License-Identifier: Apache-2.0
// Leaves the job of Horo when jax ends the process.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <thread>

#include "base/mutex.hpp"
#include "horo/horo.h"

namespace horo::mpi_abi {

/// A process of jax that ends waits in a barrier until all others end. Peers that wait for it in a
/// collective would wait as long, so it leaves the job of Horo, which tells them. Programs that jax
/// has started before still run and may need its peers: the process leaves when no collective runs
/// and all of its threads have slept for a while. Thread: any.
class Departure {
 public:
  static Departure& instance();

  /// Call it before a collective, and exit() after it. Fails: with false (the process has left).
  bool enter();
  void exit(horo_status status);

  /// jax has called MPI_Finalize: leaves the job as soon as possible, on a thread of its own.
  void begin();

 private:
  enum class State { taking_part, leaving, left };

  void watch();
  void end();

  Mutex mutex_;
  std::condition_variable changed_;
  State state_ HORO_GUARDED_BY(mutex_) = State::taking_part;
  int running_ HORO_GUARDED_BY(mutex_) = 0;            ///< Collectives.
  std::uint64_t entered_ HORO_GUARDED_BY(mutex_) = 0;  ///< Collectives so far.
  bool peer_left_ HORO_GUARDED_BY(mutex_) = false;     ///< A collective failed for this reason.
  std::thread watcher_;                                ///< begin() starts it, end() joins it.
};

}  // namespace horo::mpi_abi
