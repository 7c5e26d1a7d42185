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
#include <unordered_map>
#include <vector>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "runtime/arena.hpp"
#include "runtime/bootstrap/meeting.hpp"
#include "runtime/coordinator/board.hpp"
#include "runtime/coordinator/engine.hpp"
#include "runtime/operation.hpp"

namespace horo::runtime {

/// What a session takes from the knobs.
struct SessionOptions {
  BoardParams board;
  Duration start_timeout = std::chrono::seconds(30);
  Duration spin = Duration(-1);  ///< Negative: chosen by the number of cores.
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
  /// Attaches to the board of `meeting`. Blocks: until all local ranks have.
  /// Fails: timed_out, peer_lost, unsupported, out_of_memory, protocol.
  static Result<std::unique_ptr<Session>> join(bootstrap::Meeting meeting,
                                               const SessionOptions& options);

  /// After shutdown().
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const WorkerIdentity& identity() const { return meeting_.identity; }

  /// Leaves the job; pending operations that not all ranks have submitted end with shut_down.
  /// Blocks: until what is agreed has been done. Idempotent. Thread: one at a time.
  void shutdown();

  /// Fails: invalid_argument, duplicate, resource_exhausted, peer_lost.
  Result<TensorId> declare(std::string_view name, const Signature& signature);

  /// Fails: duplicate, invalid_argument, peer_lost, shut_down, resource_exhausted.
  Result<Operation*> submit(TensorId id, const Submission& given);

  /// Moves things on if nobody else does, without waiting.
  void poke();

  /// Runs `callback` at the end, without anybody waiting: this rank and its peers move on by
  /// themselves.
  void on_complete(Operation& operation, Operation::Callback callback, void* user);

  /// True when it is done, false when the deadline passed first.
  bool wait(Operation& operation, const Deadline& deadline);

  OperationTable& operations() { return operations_; }

  Arena& arena() { return arena_; }

  Result<Signature> signature_of(TensorId id);
  SessionCounters counters() const;

 private:
  Session(bootstrap::Meeting meeting, const SessionOptions& options, std::unique_ptr<Board> board);
  Status meet(Duration timeout);
  std::string absent_ranks();

  bool try_token();
  /// As try_token, with some patience; false too when `operation` is done.
  bool claim_token(const Operation& operation);
  void return_token();
  /// Runs progress until `operation` is done (foreground), or until there is nothing to do and
  /// nothing in flight (background: null). Holds the token.
  void drive(const Operation* operation, const Deadline& deadline);
  void sleep_as_driver(std::uint32_t who, const Deadline& deadline);
  void run_background();
  void sleep_in_background();
  /// Whom a mark must move to act now.
  enum class Urgency { none, peers, everybody };

  Urgency urgency(const LocalTensor& tensor, bool completed);

  bootstrap::Meeting meeting_;
  const std::unique_ptr<Board> board_;
  const Duration spin_;

  OperationTable operations_;
  Arena arena_;
  Engine engine_;
  std::atomic<bool> token_{false};
  std::atomic<std::uint32_t> local_waiters_{0};
  std::atomic<std::uint32_t> callbacks_{
      0};  ///< 1: callbacks are in use, so this rank moves on by itself.
  std::atomic<bool> stopping_{false};
  std::atomic<bool> left_{false};
  std::atomic<std::uint64_t> sleeps_{0};
  std::atomic<std::uint64_t> wakes_{0};

  std::mutex names_mutex_;
  std::unordered_map<std::string, TensorId> names_;  // HORO_GUARDED_BY(names_mutex_)

  std::thread background_;
};

}  // namespace horo::runtime
