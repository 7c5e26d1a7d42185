// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "discovery/sources/slurm.hpp"

namespace horo::discovery {

/// The pause between two questions to Slurm's controller, which answers all users of a cluster.
inline constexpr Duration kSlurmPause = std::chrono::seconds(10);

/// Whether squeue can tell which nodes this Slurm job has now: it is in PATH, and the job is not a
/// heterogeneous one. Blocks: for files.
bool can_ask_slurm(const Lookup& environment);

/// The nodes that the job has now, which may be others than those that it began with: nodes fail
/// under --no-kill, and `scontrol update` takes nodes away or adds those of another job. Blocks:
/// until squeue has ended. Fails: as output_of; unavailable (its answer is no list of nodes).
Result<std::vector<std::string>> slurm_nodes_now(const Lookup& environment, WaitLimit limit);

/// The nodes that this Slurm job has now. Nodes that it has had from its beginning keep their
/// slots; further ones have as many as the first of those.
class SlurmQueueSource final : public HostSource {
 public:
  SlurmQueueSource(Lookup environment, int ranks_per_host);

  std::string_view name() const override { return began_.name(); }

  /// Blocks: until squeue has ended. Fails: as SlurmSource::list and slurm_nodes_now.
  Result<Listing> list(WaitLimit limit) override;

 private:
  Lookup environment_;
  SlurmSource began_;
};

}  // namespace horo::discovery
