// SPDX-License-Identifier: Apache-2.0
// N ranks in one process on one board, moved one step at a time in an order drawn from a seed.
// Board, log and backend are those of real jobs; only the scheduler is simulated.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/host/arena.hpp"
#include "runtime/sets/process_sets.hpp"

namespace horo::sim {

/// One rank's side of one tensor.
struct Buffer {
  runtime::Signature signature;
  std::string name;
  SetId set;
  std::string group;  ///< Empty: none.
  std::uint32_t group_size = 0;
  std::vector<std::byte> own;                ///< Ordinary memory ...
  std::byte* shared = nullptr;               ///< ... or in the arena.
  std::optional<runtime::Submission> given;  ///< Empty: the whole tensor, in place.
  std::vector<std::int64_t> splits;          ///< Storage of `given.splits`.
  runtime::Operation* operation = nullptr;

  std::byte* data() { return shared != nullptr ? shared : own.data(); }
};

class SimJob {
 public:
  SimJob(int ranks, std::uint64_t seed, const runtime::BoardParams& params);
  ~SimJob();
  SimJob(const SimJob&) = delete;
  SimJob& operator=(const SimJob&) = delete;

  /// The descriptor of the ranks' shared memory.
  int descriptor() const { return fd_; }

  int ranks() const { return static_cast<int>(ranks_.size()); }

  std::mt19937_64& random() { return random_; }

  runtime::HostMemory& host(int rank) { return *ranks_[static_cast<std::size_t>(rank)]->host; }

  runtime::ProcessSets& sets(int rank) { return *ranks_[static_cast<std::size_t>(rank)]->sets; }

  /// The world's board.
  runtime::Board& board(int rank) { return *sets(rank).find(runtime::kWorld)->board; }

  runtime::Engine& engine(int rank) { return *sets(rank).find(runtime::kWorld)->engine; }

  /// Adds a process set on all ranks.
  SetId add_set(const std::vector<int>& ranks);

  /// Adds a tensor to what `rank` will submit; `fill` writes its input.
  Buffer& add(int rank, const std::string& name, const runtime::Signature& signature, bool shared,
              SetId set = runtime::kWorld);

  /// The same with the given buffers; `splits` is for an alltoall.
  Buffer& add(int rank, const std::string& name, const runtime::Signature& signature,
              const runtime::Submission& given, std::vector<std::int64_t> splits = {});

  /// Memory that lives as long as the job.
  std::byte* allocate(int rank, std::uint64_t bytes, bool shared);

  /// From now on the rank's ordinary tensors borrow arena memory, as on hosts with few cores.
  void lend(int rank) {
    auto& r = *ranks_[static_cast<std::size_t>(rank)];
    r.operations.lent().lend_from(*r.arena, ranks());
  }

  /// Submits all that was added, rank by rank, before any rank makes progress.
  void submit_all();

  /// Submits the next tensor of one rank; false when there is none.
  bool submit_next_of(int rank) { return submit_next(*ranks_[static_cast<std::size_t>(rank)]); }

  /// Moves one live rank, drawn at random: it submits its next tensor or makes progress.
  void step();

  /// Steps until every operation of every live rank is done; false after `most` steps (a hang).
  bool run(std::uint64_t most);

  /// Ends a rank as the kernel would: it does not move any more, and the agent poisons the board.
  void kill(int rank);

  /// Stops a rank without a report.
  void pause(int rank) { ranks_[static_cast<std::size_t>(rank)]->paused = true; }

  bool alive(int rank) const { return ranks_[static_cast<std::size_t>(rank)]->alive; }

  std::vector<std::unique_ptr<Buffer>>& buffers(int rank) {
    return ranks_[static_cast<std::size_t>(rank)]->buffers;
  }

  std::uint64_t steps() const { return steps_; }

 private:
  struct SimRank {
    std::shared_ptr<runtime::HostMemory> host;
    runtime::OperationTable operations;
    std::unique_ptr<runtime::ProcessSets> sets;
    std::unique_ptr<runtime::Arena> arena;
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<std::unique_ptr<std::byte[]>> memory;
    std::size_t submitted = 0;
    bool alive = true;
    bool paused = false;
  };

  bool submit_next(SimRank& rank);
  bool all_done() const;

  std::mt19937_64 random_;
  int fd_ = -1;
  std::vector<std::unique_ptr<SimRank>> ranks_;
  std::uint64_t steps_ = 0;
};

/// Signature of a one-dimensional tensor.
runtime::Signature vector_of(runtime::Kind kind, runtime::DType dtype, std::int64_t count);

/// Small rings, so that few elements already need many steps.
runtime::BoardParams tight_params();

}  // namespace horo::sim
