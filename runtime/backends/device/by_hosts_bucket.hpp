// SPDX-License-Identifier: Apache-2.0
// A sum of tensors in device memory over several hosts, where no library moves it between their
// devices. It is cut into stretches. Each is packed into one block of device memory, and takes the
// steps
//
//   scatter   reduce-scatter among the devices of the host: this rank gets the host's sum of its
//             slice
//   across    the slice goes to host memory, where it is summed over the hosts (HostSum), and back
//   gather    all-gather among the devices of the host
//
// while other stretches are in other steps. Operations among the devices of a host have to start in
// one order on all its ranks, whenever slices come back: as many scatters as there may be stretches
// under way, then a gather and a scatter in turn. The next bucket begins when the last gather has
// started.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/backends/device/by_hosts_lane.hpp"
#include "runtime/backends/device/host_bound.hpp"
#include "runtime/bucket/bucket_timer.hpp"

namespace horo::runtime {

/// An error of the device breaks the set, because other ranks wait for this one on their devices.
/// Thread: the holder of the progress token.
class ByHostsBucket final : public HostBound {
 public:
  /// Bytes of a rank's slice of a stretch, except for the last one.
  static constexpr std::uint64_t kSliceBytes = std::uint64_t{2} << 20U;

  /// All outlive the bucket. `local` moves tensors among the devices of this host.
  ByHostsBucket(Bucket bucket, StagingLane& staging, ByHostsLane& lane, Backend& local);

  bool has_starts() const override { return gathered_ < stretches_.size(); }

  void allow_starts() override { may_start_ = true; }

  Result<bool> fill() override;
  Result<bool> feed(Backend& host) override;
  bool drain(const Backend& host) override;
  bool done() const override;

  bool waits_for_device() const override { return true; }

  bool abandon() override;
  void forget() override;

 private:
  /// An operation among the devices of this host.
  struct Step {
    DeviceOutcome outcome;
    SharedEvent ready;  ///< It waits for this one, which nobody else records meanwhile.
    SharedEvent finished;
    std::uint64_t ticket = 0;  ///< The local backend has given it; 0: not yet.
  };

  struct Stretch {
    std::vector<Cut> cuts;
    std::uint64_t elements = 0;
    std::uint64_t own = 0;  ///< Elements of this rank's slice.
    SharedResult block;     ///< All elements, end to end.
    Step scatter;
    Step gather;
    PinnedSlots::Slot* slot = nullptr;  ///< The slice in host memory. Null: there is none.
    SharedEvent copied;                 ///< Behind the last copies that were put on a stream.
    bool stray = false;                 ///< A copy may use the slot, and no event tells its end.
    PhaseTimer timer;                   ///< It measures these copies.
  };

  std::byte* slice_of(const Stretch& stretch) const;
  Signature like_of(Kind kind) const;
  Status start_step(Step& step, Bucket bucket, const void* in, std::uint64_t elements, void* out);
  Result<bool> start_next();
  Status scatter(Stretch& stretch);
  Status pack(Stretch& stretch) const;
  Status gather(Stretch& stretch);
  Result<bool> fetch_next();
  Result<bool> look_at_fetched();
  Result<bool> unpack_next();
  Status unpack(Stretch& stretch);
  Result<bool> look_at_unpacked();
  std::vector<DeviceSpan> spans(const Stretch& stretch, bool results) const;
  Status record(SharedEvent& event, StreamHandle stream) const;
  Result<bool> passed(Stretch& stretch);
  Status launch();
  bool will_end(const Step& step) const;
  Status mark_end(const SharedEvent& end);
  void give_back(Stretch& stretch);

  Device& device() const { return lane_.gpu().device(); }

  Bucket bucket_;
  StagingLane& staging_;
  ByHostsLane& lane_;
  Backend& local_;
  std::deque<Stretch> stretches_;
  bool may_start_ = false;
  // So many stretches have come so far:
  std::size_t scattered_ = 0;  ///< Their scatter has started.
  std::size_t fetched_ = 0;    ///< Their slice is being copied to the host.
  std::size_t here_ = 0;       ///< It is there.
  std::size_t sent_ = 0;       ///< The first exchange between hosts has started.
  std::size_t shared_ = 0;     ///< The second one has.
  std::size_t arrived_ = 0;    ///< The slice's sum is in host memory.
  std::size_t gathered_ = 0;   ///< Their gather has started.
  std::size_t unpacked_ = 0;   ///< The copies to the tensors have.
  std::size_t done_ = 0;
  bool launched_ = false;
};

}  // namespace horo::runtime
