// SPDX-License-Identifier: Apache-2.0
// One rank's life in a job: from the environment to the last operation, and the threads that drive
// progress. Everything behind the C ABI that is not a conversion.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.hpp"
#include "base/futex.hpp"
#include "base/result.hpp"
#include "runtime/arena.hpp"
#include "runtime/bootstrap/meeting.hpp"
#include "runtime/coordinator/host_memory.hpp"
#include "runtime/coordinator/hosts.hpp"
#include "runtime/coordinator/process_sets.hpp"
#include "runtime/coordinator/stall_watch.hpp"
#include "runtime/core_spread.hpp"
#include "runtime/operation.hpp"
#include "runtime/recording.hpp"

namespace horo::runtime {

/// What a session takes from the knobs.
struct SessionOptions {
  BoardParams board;
  Duration start_timeout = std::chrono::seconds(30);
  Duration spin = Duration(-1);  ///< Negative: chosen by the number of cores.
  bool wake_delay_set = false;   ///< By the user; else longer where no core is spare.
  StallTimes stalls;
  HostsOptions hosts;  ///< For a job of several.
  RecordingOptions recording;
};

struct SetSubmission {
  SetId set;
  TensorHandle tensor;
  Submission given;
};

struct SessionCounters {
  std::uint64_t tensors = 0, entries = 0, bytes = 0, fused_bytes = 0, direct_bytes = 0, sleeps = 0,
                wakes = 0;
};

/// Thread: any. Progress (agreement and execution) runs under one token: a waiting caller takes it
/// if it is free, else the session's own thread has it; nobody waits while holding it for anything
/// but the peers.
class Session {
 public:
  /// Attaches to the board of `meeting`. Blocks: until all ranks have.
  /// Fails: timed_out, peer_lost, unsupported, out_of_memory, protocol; as Hosts.
  static Result<std::unique_ptr<Session>> join(bootstrap::Meeting meeting,
                                               const SessionOptions& options);

  /// After shutdown().
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const WorkerIdentity& identity() const { return meeting_.identity; }

  /// Every host runs as many ranks as every other.
  bool homogeneous() const;

  /// Leaves the job; pending operations that not all ranks have submitted end with shut_down.
  /// Blocks: until what is agreed has been done. Idempotent. Thread: one at a time.
  void shutdown();

  // -- Process sets -----------------------------------------------------------------------------

  /// Adds a process set; all ranks of the job call it with the same ranks, and as often and in the
  /// same order as they remove. Blocks: until all have. Fails: invalid_argument, mismatch (the
  /// ranks differ between callers), duplicate (such a set exists), out_of_memory, peer_lost,
  /// shut_down.
  Result<SetId> add_set(std::vector<Rank> ranks);

  /// Removes a set; its operations that are not agreed end with shut_down. All ranks call it.
  /// Blocks and fails as add_set; not_found.
  Status remove_set(SetId id);

  const ProcessSets& sets() const { return sets_; }

  // -- Tensors ----------------------------------------------------------------------------------

  /// Fails: invalid_argument (not a member too), not_found (set), duplicate, resource_exhausted,
  /// peer_lost.
  Result<TensorHandle> declare(SetId set, std::string_view name, const Signature& signature,
                               const GroupName& group = {});

  /// Fails: duplicate, invalid_argument, not_found, peer_lost, shut_down, resource_exhausted.
  Result<Operation*> submit(SetId set, TensorHandle tensor, const Submission& given);

  /// All of them or, when one fails, none. Fails: as submit.
  Status submit_all(std::span<const SetSubmission> submissions,
                    std::vector<Operation*>& operations);

  /// Moves things on if nobody else does, without waiting.
  void poke();

  /// Runs `callback` at the end, without anybody waiting: this rank and its peers move on by
  /// themselves. Fails: duplicate (it has one).
  Status on_complete(Operation& operation, Operation::Callback callback, void* user);

  /// True when all are done, false when the deadline passed first.
  bool wait(std::span<Operation* const> operations, const Deadline& deadline);

  bool wait(Operation& operation, const Deadline& deadline) {
    Operation* const one = &operation;
    return wait({&one, 1}, deadline);
  }

  OperationTable& operations() { return operations_; }

  /// It may outlive the session.
  const std::shared_ptr<Arena>& arena() { return arena_; }

  SessionCounters counters() const;

 private:
  Session(bootstrap::Meeting meeting, const SessionOptions& options,
          std::unique_ptr<HostMemory> host);
  Status meet(Duration timeout);
  /// Once all have told which cores they may run on.
  void settle_crowding();
  std::string absent_ranks();

  /// Holds the token for more than progress; who drives gives way between two steps, asleep or not,
  /// and goes on afterwards. Blocks: until then, and one at a time.
  class TakenToken {
   public:
    explicit TakenToken(Session& session) : alone_(session.takers_), session_(session) {
      session.take_token();
    }

    ~TakenToken() { session_.give_token_back(); }

    TakenToken(const TakenToken&) = delete;
    TakenToken& operator=(const TakenToken&) = delete;

   private:
    const std::lock_guard<std::mutex> alone_;
    Session& session_;
  };

  bool try_token();
  void take_token();
  void give_token_back();
  /// Takes the token, or waits until it can be had, `operation` is done or the deadline passed.
  /// The session's own thread hands it over between two steps: whoever waits drives best himself.
  bool claim_token(Operation& operation, const Deadline& deadline);
  void return_token();
  void hand_over();
  /// Runs progress until `operation` is done (foreground), or until there is nothing to do and
  /// nothing in flight or a caller wants the token (background: null). Holds the token.
  void drive(const Operation* operation, const Deadline& deadline);
  /// How long a driver looks for news before it sleeps.
  Duration patience(bool foreground) const;
  bool let_others_run();
  void sleep_as_driver(std::uint32_t who, const Deadline& deadline);
  void run_background();
  void sleep_in_background();
  /// Says that the user's code is inside libhoro; the time. Short spins are not worth the clock.
  TimePoint note_call();
  /// If it is time to. Holds the token.
  void look_for_stalls(TimePoint now);
  /// What can fail of a submission: its operation is claimed afterwards, and launch follows.
  Result<Operation*> prepare(const SetSubmission& submission, ProcessSet*& own);
  void launch(const Submission& given, Operation& operation, ProcessSet& own, std::uint64_t ticks);

  /// Whom a mark must move to act now.
  enum class Urgency { none, peers, everybody };

  /// A tensor that this rank has completed on a host that is not all.
  void tell_other_hosts(ProcessSet& own, Urgency urgent);
  /// `ticks`: of timeline/ticks.hpp, now.
  Urgency urgency(Board& board, std::uint64_t bytes, bool completed, std::uint64_t ticks);

  /// The set, if it is there and this rank is in it. Fails: not_found, invalid_argument.
  Result<ProcessSet*> own_set(SetId id);
  /// Everybody's `words`, if all are the same. Fails: mismatch, and as an allgather.
  Status agree(std::string_view what, std::vector<std::int32_t> words);
  void drain(ProcessSet& set);

  bootstrap::Meeting meeting_;
  const std::shared_ptr<HostMemory> host_;
  const bool own_spin_;  ///< Nobody set how long to spin: the next three follow from the cores.
  Duration spin_;
  const bool by_processor_ = timeline::counts_by_processor();
  const bool own_wake_delay_;   ///< The user's.
  std::uint64_t wake_delay_;    ///< Ticks of timeline/ticks.hpp.
  bool own_core_ = false;       ///< Every rank has one.
  bool crowded_ = false;        ///< More ranks than cores.
  bool no_core_spare_ = false;  ///< For the session's own threads, while the ranks compute.
  Deadline crowded_out_ = Deadline::in(SteadyClock::instance(), Duration::zero());

  std::unique_ptr<Hosts> hosts_;  ///< Null: one host is all.
  OperationTable operations_;
  const std::shared_ptr<Arena> arena_;
  ProcessSets sets_;
  StallWatch stalls_;
  CoreSpread spread_;

  /// Who takes the token from a driver is handed it as that one returns it.
  enum Taker : std::uint32_t { kNoTaker = 0, kTakerWaits = 1, kTakerHasIt = 2 };

  std::atomic<bool> token_{false};
  futex::Word taker_{kNoTaker};
  std::atomic<std::uint32_t> local_waiters_{0};
  std::atomic<Operation*> applicant_{nullptr};  ///< What a caller waits for who wants the token.
  std::atomic<bool> handed_over_{false};        ///< That caller has not come to take it yet.
  std::atomic<std::uint32_t> callbacks_{
      0};  ///< 1: callbacks are in use, so this rank moves on by itself.
  std::atomic<bool> stopping_{false};
  std::atomic<bool> left_{false};
  std::atomic<std::uint64_t> sleeps_{0};
  std::atomic<std::uint64_t> wakes_{0};

  std::mutex set_changes_;  ///< One at a time adds or removes a set.
  std::mutex takers_;       ///< Of TakenToken, inside set_changes_.

  std::thread background_;
};

}  // namespace horo::runtime
