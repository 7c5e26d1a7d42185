// SPDX-License-Identifier: Apache-2.0
// Collectives on device memory by NCCL, on streams of its own that wait for the tensors' ready
// events. No host thread waits for a device: a bucket is done when the event behind it has
// passed.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "runtime/backends/nccl/nccl_library.hpp"
#include "runtime/bucket/bucket_timer.hpp"
#include "runtime/device/open_device.hpp"

namespace horo::runtime {

/// Thread: the holder of the progress token.
class NcclBackend final : public Backend {
 public:
  /// A member's part in a communicator.
  struct Member {
    OpenDevice* gpu = nullptr;            ///< It outlives the backend.
    std::unique_ptr<OpenDevice> owned{};  ///< The same, if it is the backend's.
    /// One for each stream, which has a communicator; the same on all members.
    std::vector<nccl::UniqueId> ids;
    int position = 0;
    int ranks = 1;
    bool packs = false;  ///< All members have kernels that pack tensors.
  };

  /// The device's context is the calling thread's. Blocks: until all members have connected. Fails:
  /// as the device and NCCL.
  static Result<std::unique_ptr<Backend>> join(const nccl::Library& library, Member member);

  /// Whether it moves such buckets; with `packs` as in Member. Pure.
  static bool takes(const Signature& like, bool packs);
  ~NcclBackend() override;
  NcclBackend(const NcclBackend&) = delete;
  NcclBackend& operator=(const NcclBackend&) = delete;

  BackendCaps caps() const override { return {.name = "nccl", .overlaps = true, .polls = true}; }

  /// Fails: unsupported (host memory; a type, operation or scaling that NCCL does not have).
  Status start(Bucket bucket) override;
  bool progress() override;

  std::uint64_t completed() const override { return completed_; }

  std::uint64_t started() const override { return started_; }

  /// Zero, because the device copies while no host thread waits.
  CopyTimes copied() const override { return {}; }

  Status health() const override { return health_; }

  /// Blocks: until the device has left the buffers, which NCCL's abort makes it do.
  void abort() override;

 private:
  /// Buckets take the lanes in turn. Buckets of different lanes run at the same time.
  struct Lane {
    nccl::Comm comm = nullptr;
    StreamHandle stream = nullptr;
    void* fusion = nullptr;  ///< Memory for packed tensors.
    std::uint64_t fusion_bytes = 0;
    PhaseTimer timer;  ///< It measures the bucket whose work is put on the stream.
  };

  /// A bucket whose work is on a stream.
  struct Flight {
    SharedEvent event;
    DeviceOutcome* outcome = nullptr;  ///< Null after an abort.
    StreamHandle stream = nullptr;
    PhaseTimer timer;
  };

  NcclBackend(const nccl::Library& library, Member member);
  /// Blocks: until all members have connected.
  Status add_lane(const nccl::UniqueId& id);
  Status check(const Bucket& bucket) const;
  Status check_results(const Bucket& bucket) const;
  Status enqueue(Lane& lane, const Bucket& bucket);
  Status all_reduce(Lane& lane, const Bucket& bucket);
  Status reduce_packed(Lane& lane, const Bucket& bucket);
  /// Memory for packed tensors, which the lane's buckets use in the stream's order. Fails:
  /// out_of_memory.
  Result<void*> fusion_memory(Lane& lane, std::uint64_t bytes);
  void free_retired();
  void drain();
  Status in_group(Lane& lane, const Bucket& bucket) const;
  Status move_part(const Lane& lane, const Bucket& bucket, std::size_t part) const;
  Status move_alltoall(const Lane& lane, const Bucket& bucket, std::size_t part) const;
  Status begin_turn() const;
  Status watch() const;

  const nccl::Library& nccl_;
  const std::unique_ptr<OpenDevice> owned_;
  OpenDevice& gpu_;
  Device* const device_;
  const bool packs_;
  const int ranks_;
  const int position_;
  std::vector<Lane> lanes_;
  std::deque<Flight> flights_;
  std::vector<void*> retired_;  ///< Fusion memory that was too small, until nothing is in flight.
  std::uint64_t started_ = 0;
  std::uint64_t completed_ = 0;
  Status health_;
};

}  // namespace horo::runtime
