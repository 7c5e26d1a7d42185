// SPDX-License-Identifier: Apache-2.0
// Communicators of MPI as process sets of Horo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "horo/horo.h"

namespace horo::mpi_abi {

/// 0 or an error code; error_text() then says what has gone wrong in this thread.
using Code = int;
inline constexpr Code kOther = 15;

Code refuse(std::string text);
const std::string& error_text();

/// One collective, whose buffers have `count` elements on this rank.
struct MpiCall {
  horo_kind kind = HORO_ALLREDUCE;
  horo_dtype dtype = HORO_UINT8;
  horo_reduce_op op = HORO_SUM;
  std::int64_t count = 0;
  int root = 0;  ///< Rank of the job.
  std::string label;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t out_bytes = 0;
};

/// A handle of MPI. All ranks of the job make the same communicators in the same order. Thread:
/// any; calls run one after the other.
class MpiCommunicator {
 public:
  MpiCommunicator(horo_set set, std::vector<int> ranks) : set_(set), ranks_(std::move(ranks)) {}

  /// Ranks of the job, in the order of the communicator.
  const std::vector<int>& ranks() const { return ranks_; }

  int rank() const;  ///< The calling process in it; -1: not a member.

  /// Runs a collective and waits for it. Blocks: not for a dead peer. Fails: also after the process
  /// has left the job.
  Code run(const MpiCall& request);

  /// Exchanges one number per rank, in rank order.
  Code gather(std::int64_t own, std::vector<std::int64_t>& all);

 private:
  horo_status complete(const MpiCall& request) HORO_EXCLUDES(mutex_);
  horo_status submit(const MpiCall& request, const std::string& name, horo_op& op)
      HORO_REQUIRES(mutex_);

  const horo_set set_;
  const std::vector<int> ranks_;
  Mutex mutex_;
  std::unordered_map<std::string, horo_tensor> declared_ HORO_GUARDED_BY(mutex_);
};

/// All communicators of the process. Thread: one at a time.
class MpiCommunicators {
 public:
  static MpiCommunicators& instance();

  /// Joins the job. Makes a set for each pair of ranks, for messages, in jobs of at most
  /// kMostForMessages ranks. Blocks: until all ranks have called it.
  Code start();

  /// nullptr before start().
  MpiCommunicator* world() { return world_; }

  /// MPI_Comm_split of the world: a communicator for each colour, ordered by key. All ranks of the
  /// job call it. Fails: keys that are not in the order of the ranks; more than 256 sets.
  Code split(std::int64_t colour, std::int64_t key, MpiCommunicator*& made);

  /// Sends `bytes` from `source` to `target`, ranks of the job, of which the caller is one. The
  /// n-th message from one to the other meets its n-th receive.
  Code message(int source, int target, void* data, std::int64_t bytes);

 private:
  Code find_or_add(const std::vector<int>& ranks, MpiCommunicator*& made);

  static constexpr int kMostForMessages = 16;

  MpiCommunicator* world_ = nullptr;
  std::unordered_map<std::string, MpiCommunicator*> made_;  ///< By their ranks; never freed.
};

}  // namespace horo::mpi_abi
