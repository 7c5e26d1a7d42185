// SPDX-License-Identifier: Apache-2.0
// Sums and all-gathers between ranks of one host whose devices can read each other's memory;
// several ranks may share a device. Buckets are cut into pieces. A rank packs its piece into a
// slot; when all have done so, one kernel of each rank reads all slots and writes the rank's
// tensors (one shot). Of a reduce-scatter each rank reduces its own elements only. Kernels never
// wait for another rank: the order is kept by events, and a rank starts its kernel when the others
// have recorded theirs. So ranks on one device cannot deadlock, in whatever order their work runs
// there.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "runtime/backends/ipc/ipc_slots.hpp"
#include "runtime/bucket/bucket_timer.hpp"

namespace horo::runtime {

inline constexpr int kMostIpcRanks = static_cast<int>(kMostReduced);

/// Whether the kernels move tensors like this one.
bool ipc_moves(const Signature& like);

/// Whether the path takes them: all-reduces. Of other kinds no rank knows how much the others bring
/// before it has chosen the way.
bool ipc_takes(const Signature& like);

/// Thread: the holder of the progress token.
class IpcBackend final : public Backend {
 public:
  /// `ranks` by position; the own one's is own(). `device` and `gpu` outlive the
  /// backend.
  struct Parts {
    Device* device = nullptr;
    OpenDevice* gpu = nullptr;  ///< The same device. Null: times are not measured.
    int position = 0;
    std::vector<std::unique_ptr<ipc::Slots>> ranks{};
    Duration timeout{};  ///< After this silence it looks for lost peers; zero: never.
  };

  /// Fails: as SharedDevice.
  static Result<std::unique_ptr<Backend>> make(Parts parts);

  /// Blocks: until the other ranks have read this one's slots, for half a minute at most; not after
  /// an error.
  ~IpcBackend() override;
  IpcBackend(const IpcBackend&) = delete;
  IpcBackend& operator=(const IpcBackend&) = delete;

  BackendCaps caps() const override { return {.name = "ipc", .overlaps = true, .polls = true}; }

  /// Fails: unsupported (all that ipc_moves() not; host memory; a rank has joined).
  Status start(Bucket bucket) override;
  bool progress() override;

  std::uint64_t completed() const override { return completed_; }

  std::uint64_t started() const override { return started_; }

  /// Zero, because the device copies while no host thread waits.
  CopyTimes copied() const override { return {}; }

  Status health() const override { return health_; }

  /// Blocks: briefly, until the device has left the buffers. One that is busy may use them until
  /// DeviceOutcome::finished.
  void abort() override;

 private:
  /// A bucket whose pieces are not all reduced.
  struct Flight {
    Bucket bucket;
    EventHandle event = nullptr;  ///< Behind its last kernel.
    bool launched = false;
    PhaseTimer timer{};
  };

  /// Elements of a bucket that fit a slot. All ranks have the same number of pieces.
  struct Piece {
    Flight* flight = nullptr;
    std::vector<DeviceSpan> in;
    std::vector<DeviceSpan> out;   ///< A sum's results.
    std::uint64_t reads_from = 0;  ///< Elements of the slots before those of `out`.
    std::vector<std::vector<DeviceSpan>> gathered;  ///< all-gather: what comes from each rank.
    bool first = false;
    bool last = false;
  };

  /// Elements that lie together in a rank's input, and where their result goes. Null: nowhere here.
  struct Run {
    void* in = nullptr;
    void* out = nullptr;
    std::uint64_t count = 0;
  };

  IpcBackend(Parts parts, SharedDevice shared, StreamHandle stream)
      : parts_(std::move(parts)), shared_(shared), stream_(stream) {}

  ipc::Slots& own() const { return *parts_.ranks[static_cast<std::size_t>(parts_.position)]; }

  void cut(Flight& flight);
  std::vector<Run> runs_of(const Bucket& bucket, int rank) const;
  void add_sums(Flight& flight, std::uint64_t room, std::vector<Piece>& pieces) const;
  void add_gathers(Flight& flight, std::uint64_t room, std::vector<Piece>& pieces) const;
  Status read_slots(const Piece& piece, std::span<const void* const> slots);
  bool all_have(std::atomic<std::uint64_t> ipc::Counters::*count, std::uint64_t least) const;
  Status pack(const Piece& piece, std::uint64_t number);
  Status reduce(const Piece& piece, std::uint64_t number);
  Status finish(Flight& flight);
  Result<bool> advance();
  void retire();
  Status watch(bool moved);
  bool has_read(const ipc::Slots& rank) const;
  void leave();
  /// Work on the stream waits for an event that will never come.
  bool waits_for_ended() const;
  void drain();

  Parts parts_;
  const SharedDevice shared_;
  const StreamHandle stream_;
  std::deque<std::unique_ptr<Flight>> flights_;
  std::deque<Piece> pieces_;   ///< Those that are not reduced.
  std::uint64_t packed_ = 0;   ///< Number of the next piece to pack.
  std::uint64_t reduced_ = 0;  ///< Number of the piece that is first in `pieces_`.
  std::uint64_t started_ = 0;
  std::uint64_t completed_ = 0;
  TimePoint moved_{};
  Status health_;
};

}  // namespace horo::runtime
