// SPDX-License-Identifier: Apache-2.0
// Drives this rank's progress: in a caller that waits, or in the runtime's own thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <thread>

#include "base/deadline.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "runtime/engine/operations/operation.hpp"
#include "runtime/host/host_memory.hpp"
#include "runtime/session/call_notes.hpp"
#include "runtime/session/core_spread.hpp"
#include "runtime/session/progress_token.hpp"
#include "runtime/session/spin_policy.hpp"
#include "runtime/sets/process_sets.hpp"
#include "runtime/stalls/stall_monitor.hpp"

namespace horo::runtime {

/// Owns the loop that makes progress, looks for news and sleeps, and the runtime's own thread.
/// Thread: any, except for what says otherwise.
class ProgressDriver {
 public:
  /// All outlive this.
  ProgressDriver(HostMemory& host, ProcessSets& sets, StallMonitor& stalls, CallNotes& calls)
      : host_(host), sets_(sets), stalls_(stalls), calls_(calls), spread_(host) {}

  ProgressDriver(const ProgressDriver&) = delete;
  ProgressDriver& operator=(const ProgressDriver&) = delete;

  /// Starts the runtime's own thread, on `core` if there is one, which must be one of core_of().
  void start(const SpinPolicy& spin, std::optional<int> core);

  bool started() const { return background_.joinable(); }

  /// Makes progress until `done()`, then none any more, and ends the thread.
  template <typename Done>
  void stop(Done done) {
    {
      Taken token(*this);
      token.progress_until(done);
      stopping_.store(true, std::memory_order_seq_cst);
    }
    end_thread();
  }

  /// True when all are done, false when the deadline passed first.
  bool wait(std::span<Operation* const> operations, const Deadline& deadline, Until until);

  /// Makes some progress if no other thread does. Blocks: no.
  void poke();

  /// Runs `callback` when the operation is done, without a caller that waits: this rank and its
  /// peers make progress by themselves. Fails: duplicate (it has one).
  Status on_complete(Operation& operation, Operation::Callback callback, void* user);

  /// This rank's own thread has to make progress: callbacks are in use, or callers sleep. Asked by
  /// a submitter behind its mark. on_complete() does the opposite: it sets the word and then looks
  /// at the marks. seq_cst on both sides, so that one of them sees the other.
  bool needs_own_thread() const {
    return callbacks_.load(std::memory_order_seq_cst) || token_.has_sleeping_applicant();
  }

  /// Holds the token for more than progress. Blocks: until the driver has given it back, between
  /// two steps, whether it sleeps or not. One thread at a time.
  class Taken {
   public:
    explicit Taken(ProgressDriver& driver) : alone_(driver.token_.takers()), driver_(driver) {
      driver_.token_.take();
    }

    /// Lets the driver go on.
    ~Taken() {
      driver_.return_token();
      driver_.host_.waker().ring_own();
    }

    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;

    /// Makes progress until `done()`. Blocks: until then.
    template <typename Done>
    void progress_until(Done done) {
      while (!done()) driver_.progress_or_sleep();
    }

   private:
    const MutexLock alone_;
    ProgressDriver& driver_;
  };

  /// How often threads of this rank slept, and how often it has woken others.
  std::uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }

  std::uint64_t wakes() const { return wakes_.load(std::memory_order_relaxed); }

  void count_wakes(int woken) {
    wakes_.fetch_add(static_cast<std::uint64_t>(woken), std::memory_order_relaxed);
  }

 private:
  /// Takes the token, or waits until it can be had, `operation` is done or the deadline passed.
  bool claim(Operation& operation, const Deadline& deadline, Until until);
  void return_token();
  /// A rank without a driver must get one: a peer needs that, or a callback or a caller of this
  /// rank that sleeps.
  bool needs_driver() const;

  // Thread: the holder of the token.
  /// Runs progress until `operation` is done. With none, as the runtime's own thread: until nothing
  /// is to be done and nothing is in flight, or a caller wants the token.
  void drive(const Operation* operation, const Deadline& deadline, Until until);
  bool goes_on(const Operation* operation, Until until) const;
  bool has_work() const;
  Duration spin_time(Sleeper who, TimePoint now) const;
  bool yield_core();
  void progress_or_sleep();

  /// Counted before the sleep, so that another thread can tell that this one sleeps.
  void count_sleep() { sleeps_.fetch_add(1, std::memory_order_relaxed); }

  void sleep(Sleeper who, const Deadline& deadline);
  Duration longest_sleep(bool inside, const Deadline& deadline) const;

  void end_thread();

  /// Callbacks are in use from now on. Thread: any.
  void note_callbacks();

  // Thread: the runtime's own.
  void run();
  void sleep_without_token();

  HostMemory& host_;
  ProcessSets& sets_;
  StallMonitor& stalls_;
  CallNotes& calls_;
  CoreSpread spread_;
  ProgressToken token_{host_.waker(), spread_};
  SpinPolicy spin_ = SpinPolicy::choose(std::nullopt, 2);
  Deadline slow_turns_ = Deadline::in(SteadyClock::instance(), Duration::zero());
  std::atomic<bool> callbacks_{false};  ///< Callbacks are in use.
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> sleeps_{0};
  std::atomic<std::uint64_t> wakes_{0};
  std::thread background_;
};

}  // namespace horo::runtime
