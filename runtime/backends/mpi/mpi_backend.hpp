// SPDX-License-Identifier: Apache-2.0
// Collectives over MPI by non-blocking calls and tests of them, without a thread of its own.
//
// Buckets are cut into segments as over any transport. A segment whose operation MPI has, with our
// rules, is one MPI_Iallreduce; the others run their schedule by MPI_Isend and MPI_Irecv. MPI gets
// staging memory only. After an abort that memory is never freed, because MPI's collectives cannot
// be cancelled and may still write to it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mpi.h>
#include <vector>

#include "base/clock.hpp"
#include "runtime/backends/flat/segment.hpp"
#include "runtime/backends/flat/staging.hpp"
#include "runtime/backends/mpi/mpi_library.hpp"
#include "runtime/bucket/backend.hpp"

namespace horo::runtime {

struct MpiOptions {
  std::string_view name;
  std::vector<int> members;  ///< Rank in the job by position.
  int slot = 0;              ///< As in Communicator.
  std::uint64_t segment = std::uint64_t{4} << 20U;
  std::size_t depth = 4;  ///< Segments in flight.
  Duration
      timeout{};  ///< Longest time without progress while progress() is called; zero: no limit.
};

/// Thread: the holder of the progress token, which makes progress only where MPI may be called.
class MpiBackend final : public Backend {
 public:
  MpiBackend(MembersComm comm, const Mesh& mesh, MpiOptions options);
  ~MpiBackend() override;
  MpiBackend(const MpiBackend&) = delete;
  MpiBackend& operator=(const MpiBackend&) = delete;

  BackendCaps caps() const override {
    return {.name = options_.name, .overlaps = true, .polls = true};
  }

  Status start(Bucket bucket) override;
  bool progress() override;

  std::uint64_t completed() const override { return completed_; }

  std::uint64_t started() const override { return started_; }

  CopyTimes copied() const override { return copies_.times(); }

  Status health() const override { return health_; }

  /// Blocks: no.
  void abort() override;

 private:
  struct Job : CutBucket {
    std::uint64_t begun = 0;  ///< Segments.
  };

  /// A segment on its way.
  struct Flight {
    Job* of = nullptr;
    std::uint64_t number = 0;  ///< Since the beginning: the same on all ranks.
    bool native = false;
    Segment plan;
    Staging memory;
    std::size_t round = 0;
    std::size_t received = 0;           ///< Receives of the rounds that have ended.
    std::vector<MPI_Request> receives;  ///< Native: the one request.
    std::vector<MPI_Request> sends;
  };

  bool begin_flights();
  Status begin(Flight& flight);
  Status begin_round(Flight& flight);
  Result<bool> advance(Flight& flight);
  void finish(Flight& flight);
  void retire();
  bool move_flights();
  Status watch_the_clock(bool moved);
  bool may_begin() const;
  /// Rank of the transfer's peer in the communicator.
  int peer_of(const Transfer& transfer) const;

  const MembersComm comm_;  ///< Kept from being freed where something failed or is on its way.
  const Mesh mesh_;
  const MpiOptions options_;
  std::deque<std::unique_ptr<Job>> jobs_;
  std::deque<std::unique_ptr<Flight>> flights_;
  std::vector<std::unique_ptr<Flight>> idle_;
  std::uint64_t number_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t reported_ = 0;  ///< Those that progress() has reported.
  CopyMeter copies_;
  TimePoint looked_{};
  TimePoint moved_{};
  bool aborted_ = false;
  Status health_;
};

}  // namespace horo::runtime
