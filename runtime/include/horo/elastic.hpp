// SPDX-License-Identifier: Apache-2.0
/// Elastic jobs, whose ranks come and go while the survivors keep their processes and memory.
#pragma once

#if __cplusplus < 202002L
#error "horo.hpp needs C++20; horo.h is for C and older C++"
#endif

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <horo/error.hpp>
#include <horo/horo.h>
#include <horo/job.hpp>

namespace horo {
inline namespace v1 {

/// A change of the ranks that the launcher wants and that the present generation does not include.
struct PendingChange {
  std::uint64_t sequence = 0;  ///< 0: there is none.
  bool removed = false;        ///< Hosts or ranks are to go.
  bool added = false;          ///< Hosts or ranks are there to be added.
};

/// Returns the change that this rank knows of. Other ranks may know it a moment later: use
/// agreed_change() to decide.
/// Blocks: no. Fails: NOT_INITIALIZED, FORKED.
inline PendingChange pending_change() {
  std::uint64_t sequence = 0;
  std::uint32_t flags = 0;
  check(horo_pending_change(&sequence, &flags));
  return {.sequence = sequence,
          .removed = (flags & HORO_CHANGE_REMOVED) != 0,
          .added = (flags & HORO_CHANGE_ADDED) != 0};
}

/// True on all ranks if any of them knows of a change. Every rank calls it at the same point of its
/// training. Blocks: as Job::allreduce. Fails: as Job::allreduce.
inline bool agreed_change(const Job& job) {
  std::int64_t latest = static_cast<std::int64_t>(pending_change().sequence);
  job.allreduce("horo.elastic.change", std::span(&latest, 1), {.op = ReduceOp::max});
  return latest != 0;
}

/// A function that trains in one generation returns how it ended.
enum class Training { finished, next_generation };

/// Calls `train(job)` in one generation after the other until it returns Training::finished; then
/// returns true. Returns false if this process is no longer part of the job: main() should then
/// return 0. `train` is called again when it returns Training::next_generation, and when it throws
/// PEER_LOST or SHUT_DOWN, which an operation does when a rank was lost or has left. It finds out
/// what the ranks have to agree on first: ranks below horo_survivors() have the state of the
/// training, the others need it. Everything that `train` makes in a generation (tensors, process
/// sets) is gone in the next; memory of SharedBuffer stays. In a job that is not elastic it calls
/// `train` once and passes on what it throws. Before it calls `train` again, it tells the launcher
/// how long the training stood still (horo_resumed). Blocks: as long as `train`, and between
/// generations until the launcher has formed one. Fails: as Job::Job, and with what `train` throws.
template <typename Train>
bool elastic_loop(Train&& train) {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> ended;  // When `train` ended for the first time since it ran.
  std::int64_t repeated = 0;               // Steps to be done again; -1: unknown.
  for (;;) {
    try {
      Job job;
      if (const auto since = std::exchange(ended, {})) {
        const std::chrono::duration<double> stood_still = Clock::now() - *since;
        static_cast<void>(horo_resumed(stood_still.count(), std::exchange(repeated, 0)));
      }
      if (train(std::as_const(job)) == Training::finished || horo_is_elastic() == 0) return true;
    } catch (const Error& error) {
      if (horo_is_elastic() == 0) throw;
      if (error.status() == HORO_REMOVED) return false;
      if (error.status() != HORO_PEER_LOST && error.status() != HORO_SHUT_DOWN) throw;
      repeated = -1;
    }
    if (!ended) ended = Clock::now();
  }
}

}  // namespace v1
}  // namespace horo
