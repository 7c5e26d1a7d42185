// SPDX-License-Identifier: Apache-2.0
// Collectives between any ranks over a wire that blocks.
//
// Buckets are cut into segments; a segment is a collective of its own, in staging memory of its
// own: packed, moved and reduced round by round as its schedule says, unpacked. Lane l, a thread,
// runs every k-th segment, counted through all buckets, from beginning to end; so while one packs
// or reduces the others keep the wire busy, also across the end of a bucket. All ranks count alike:
// lane l of one rank talks to lane l of the others only, and what one lane waits for never depends
// on another's turn.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backends/backend.hpp"
#include "runtime/backends/flat/schedule.hpp"
#include "runtime/backends/flat/segment.hpp"
#include "runtime/backends/flat/staging.hpp"
#include "runtime/backends/flat/wire.hpp"

namespace horo::runtime {

struct FlatOptions {
  std::string_view name;
  std::uint64_t segment = std::uint64_t{1} << 20U;  ///< Bytes: segment_bytes().
  int workers = 3;
  std::function<void()> notify;
};

/// Thread: the holder of the progress token; the workers touch buffers from start() until the
/// bucket counts as completed.
class FlatBackend final : public Backend {
 public:
  FlatBackend(std::unique_ptr<Wire> wire, const Mesh& mesh, FlatOptions options);
  ~FlatBackend() override;
  FlatBackend(const FlatBackend&) = delete;
  FlatBackend& operator=(const FlatBackend&) = delete;

  BackendCaps caps() const override { return {.name = options_.name, .overlaps = true}; }

  /// Fails: unsupported (a reduction that the kernels do not have, device memory).
  Status start(Bucket bucket) override;
  bool progress() override;

  std::uint64_t completed() const override { return completed_.load(std::memory_order_acquire); }

  std::uint64_t started() const override { return started_; }

  CopyTimes copied() const override { return copies_.times(); }

  Status health() const override;

  /// Blocks: while a worker copies or reduces a segment. The peers see the connections closed.
  void abort() override;

  /// Bytes given to the wire. Thread: any.
  std::uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }

 private:
  struct Job : CutBucket {    // HORO_GUARDED_BY(mutex_): left.
    std::uint64_t first = 0;  ///< Segments before it, since the beginning.
  };

  struct Worker {
    Staging memory;
    /// Of the segment. Those of a segment that fails stay until the connections are closed.
    std::vector<std::unique_ptr<Pending>> messages;
    std::thread thread;
  };

  void run(Worker& worker, std::uint64_t segment);
  std::shared_ptr<Job> job_of(std::uint64_t segment);
  Status run_segment(Worker& worker, const Job& job, std::uint64_t segment);
  Status move(Worker& worker, const Schedule& plan, const Signature& like, std::uint64_t segment);
  void finish_segment(Job& job);
  void break_down(Error error);

  const std::unique_ptr<Wire> wire_;
  const Mesh mesh_;
  const FlatOptions options_;
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> sent_{0};
  CopyMeter copies_;
  std::uint64_t started_ = 0;
  std::uint64_t seen_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::deque<std::shared_ptr<Job>> jobs_;  // HORO_GUARDED_BY(mutex_)
  std::uint64_t segments_ = 0;             // HORO_GUARDED_BY(mutex_): of all buckets so far.
  bool stopping_ = false;                  // HORO_GUARDED_BY(mutex_)
  Status health_;                          // HORO_GUARDED_BY(mutex_)
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace horo::runtime
