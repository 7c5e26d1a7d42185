// SPDX-License-Identifier: Apache-2.0
// The workers of an elastic job, from the order to start each until its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace horo::launcher {

enum class WorkerPhase : std::uint8_t {
  starting,  ///< Ordered.
  started,   ///< Runs, and has not called yet.
  called,    ///< Waits for an answer. It may be a member of the current generation as well.
  member,    ///< Has its answer, and is in the current generation.
  removed,   ///< Was told that it is no longer part of the job, and should end by itself.
  ending,    ///< The launcher ends it.
  ended,
};

/// Why a worker should leave the job.
enum class LeaveCause : std::uint8_t {
  none,
  host_aside,  ///< Its host is put aside. It may stay where the job would be too small without it.
  host_going,  ///< Its host leaves, is no longer offered, or offers fewer slots.
};

struct ElasticWorker {
  int number = 0;
  std::size_t host = 0;
  int slot = 0;
  WorkerPhase phase = WorkerPhase::starting;
  std::uint32_t attempt = 0;       ///< The number of its last call; 0: none.
  bool was_member = false;         ///< It was given a place in a generation.
  std::uint64_t entered = 0;       ///< The last generation in which it met the others; 0: none.
  std::optional<int> rank{};       ///< In the current generation; none: it is no member.
  std::optional<TimePoint> due{};  ///< It must call, leave or end by then; what, says the phase.
  LeaveCause leave = LeaveCause::none;
  std::optional<TimePoint> leave_by{};  ///< A worker of a host that goes is ended then.
  std::string why{};                    ///< Why it leaves or is ended, for people.
  bool blamed = false;                  ///< The launcher ends it for a fault of its own.

  bool living() const { return phase != WorkerPhase::ended; }

  /// It is in the job, or will be.
  bool counts() const { return phase <= WorkerPhase::member; }

  bool awaited() const { return phase == WorkerPhase::starting || phase == WorkerPhase::started; }
};

class ElasticWorkers {
 public:
  /// A new worker in the lowest free slot of the host.
  ElasticWorker& start(std::size_t host, TimePoint due);

  ElasticWorker* find(int number);

  const std::vector<ElasticWorker>& all() const { return workers_; }

  std::vector<ElasticWorker>& all() { return workers_; }

  /// Workers that may become or stay members, and are not asked to leave.
  int staying() const;
  std::vector<int> living_by_host(std::size_t hosts) const;
  int living() const;
  void forget_ended();
  /// Members of the current generation that live and are not being ended, by rank.
  std::vector<ElasticWorker*> members();
  void delay(Duration by);
  std::optional<TimePoint> next_deadline(TimePoint now) const;

 private:
  int lowest_free_slot(std::size_t host) const;

  std::vector<ElasticWorker> workers_;  ///< By number; those that ended are forgotten.
  int next_number_ = 0;
};

}  // namespace horo::launcher
