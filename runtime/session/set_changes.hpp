// SPDX-License-Identifier: Apache-2.0
// Adds and removes process sets, agreed by all ranks of the job.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/session/progress_driver.hpp"
#include "runtime/session/submitter.hpp"

namespace horo::runtime {

/// Owns the order in which this rank's threads change the sets: one change at a time. Thread: any.
class SetChanges {
 public:
  /// All outlive this. `job_size`: ranks of the job.
  SetChanges(HostMemory& host, ProcessSets& sets, OperationTable& operations, Submitter& submitter,
             ProgressDriver& driver, int job_size)
      : host_(host),
        sets_(sets),
        operations_(operations),
        submitter_(submitter),
        driver_(driver),
        job_size_(job_size) {}

  /// Blocks: until all ranks have called it. Fails: invalid_argument, mismatch (the ranks differ
  /// between callers), duplicate (such a set exists), out_of_memory, peer_lost, shut_down.
  Result<SetId> add(std::vector<Rank> ranks);

  /// Its operations that are not agreed end with shut_down. Blocks and fails as add; not_found.
  Status remove(SetId id);

  /// Blocks: while another thread adds or removes a set, at most until its time limit.
  void await_callers() { const MutexLock lock(one_at_a_time_); }

 private:
  /// Waits for what all ranks ask for; ok if that is the same. Fails: mismatch, and as an
  /// allgather.
  Status agree(std::vector<std::int32_t> words) HORO_REQUIRES(one_at_a_time_);
  /// Success, or the reason why these ranks (sorted) cannot form a new set.
  Status check_new(const std::vector<Rank>& ranks) const HORO_REQUIRES(one_at_a_time_);
  /// Adds the set; takes the token for a part of that.
  Result<SetId> make(std::vector<Rank> ranks) HORO_REQUIRES(one_at_a_time_);
  Result<ProcessSets::NewSet> begin(std::vector<Rank> ranks) HORO_REQUIRES(one_at_a_time_);

  HostMemory& host_;
  ProcessSets& sets_;
  OperationTable& operations_;
  Submitter& submitter_;
  ProgressDriver& driver_;
  const int job_size_;
  Mutex one_at_a_time_;  ///< Taken before the token.
};

}  // namespace horo::runtime
