// SPDX-License-Identifier: Apache-2.0
// Collectives between any ranks over a transport whose waits block.
//
// Buckets are cut into segments; a segment is a collective of its own, in staging memory of its
// own: packed, moved and reduced round by round as its schedule says, unpacked. Worker l, a thread,
// runs every k-th segment, counted through all buckets, from beginning to end; so while one packs
// or reduces the others keep the network busy, also across the end of a bucket. All ranks count
// alike: worker l of one rank exchanges messages with worker l of the others only, and never waits
// for another worker.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/backends/flat/schedule.hpp"
#include "runtime/backends/flat/segment.hpp"
#include "runtime/backends/flat/staging.hpp"
#include "runtime/backends/flat/transport.hpp"
#include "runtime/bucket/backend.hpp"

namespace horo::runtime {

/// Whose memory the messages of a sum may use.
enum class MessageMemory : std::uint8_t {
  staging,  ///< Only the backend's own: the transport may still write when a bucket has failed.
  tensors,  ///< Also the tensors': when the workers have ended, nothing touches a message.
};

struct FlatOptions {
  std::string_view name;
  std::uint64_t segment = std::uint64_t{1} << 20U;  ///< Bytes: segment_bytes().
  int workers = 3;
  MessageMemory messages = MessageMemory::staging;
  std::function<void()> notify;
};

/// Thread: the holder of the progress token; the workers touch buffers from start() until the
/// bucket counts as completed.
class FlatBackend final : public Backend {
 public:
  FlatBackend(std::unique_ptr<Transport> transport, const Mesh& mesh, FlatOptions options);
  ~FlatBackend() override;
  FlatBackend(const FlatBackend&) = delete;
  FlatBackend& operator=(const FlatBackend&) = delete;

  BackendCaps caps() const override { return {.name = options_.name, .overlaps = true}; }

  /// Fails: unsupported (a reduction that the kernels do not have, device memory).
  Status start(Bucket bucket) override;
  bool progress() override;

  /// A worker counts and then looks whether the driver sleeps; the driver says that it sleeps and
  /// then looks here. seq_cst on both sides, so that one of them sees the other.
  std::uint64_t completed() const override { return completed_.load(std::memory_order_seq_cst); }

  std::uint64_t started() const override { return started_; }

  CopyTimes copied() const override { return copies_.times(); }

  Status health() const override;

  /// Blocks: while a worker copies or reduces a segment. Closes the connections, which peers
  /// notice.
  void abort() override;

  /// Bytes given to the transport. Thread: any.
  std::uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }

 private:
  /// Its member `left` is guarded by mutex_.
  struct Job : CutBucket {
    std::uint64_t first = 0;  ///< Number of its first segment, counted since the backend was made.
  };

  struct Worker {
    Staging memory;
    /// Messages of the current segment. If it fails, they stay until the connections are closed.
    std::vector<std::unique_ptr<PendingMessage>> messages;
    std::thread thread;
  };

  void run(Worker& worker, std::uint64_t segment);
  std::shared_ptr<Job> job_of(std::uint64_t segment);
  Status run_segment(Worker& worker, const Job& job, std::uint64_t segment);
  Status run_staged(Worker& worker, const Job& job, const Segment& piece, std::uint64_t segment);
  Status run_in_place(Worker& worker, const Job& job, const Segment& piece, std::uint64_t segment,
                      const SegmentPlace& place);
  Status move(const Job& job, const Segment& piece, std::uint64_t segment,
              const ScheduleMemory& memory);
  void finish_segment(Job& job);
  void break_down(Error error);

  const std::unique_ptr<Transport> transport_;
  const Mesh mesh_;
  const FlatOptions options_;
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> sent_{0};
  CopyMeter copies_;
  std::uint64_t started_ = 0;
  std::uint64_t seen_ = 0;

  mutable Mutex mutex_;
  std::condition_variable work_;
  std::deque<std::shared_ptr<Job>> jobs_ HORO_GUARDED_BY(mutex_);
  std::uint64_t segments_ HORO_GUARDED_BY(mutex_) = 0;  ///< Segments of all buckets so far.
  bool stopping_ HORO_GUARDED_BY(mutex_) = false;
  Status health_ HORO_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace horo::runtime
