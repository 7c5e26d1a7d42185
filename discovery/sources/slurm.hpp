// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "discovery/source.hpp"

namespace horo::discovery {

/// The allocation of the Slurm job that this process runs in, from its environment. A heterogeneous
/// job gives all its components in order. A host's slots are its tasks, or its GPUs if the job
/// asked for GPUs and not for tasks.
class SlurmSource final : public HostSource {
 public:
  /// A host gets at least `ranks_per_host` slots, as far as its CPUs or GPUs reach; 0 adds none.
  SlurmSource(Lookup environment, int ranks_per_host);

  /// Whether this process runs in a Slurm job.
  static bool is_here(const Lookup& environment);

  std::string_view name() const override { return name_; }

  /// Blocks: no. Fails: unavailable, naming the variables that are missing or invalid.
  Result<Listing> list(WaitLimit limit) override;

 private:
  Lookup environment_;
  int ranks_per_host_;
  std::string name_;
};

/// The nodes of the job that this process runs in, for each component of a heterogeneous job.
/// Another job has one component. Fails: as SlurmSource::list.
Result<std::vector<std::vector<std::string>>> slurm_nodes(const Lookup& environment);

/// Slurm's short form of a number per node, "2(x3),1". Fails: invalid_argument; more than kMaxHosts
/// numbers are refused before any is made.
Result<std::vector<int>> parse_counts(std::string_view text);

}  // namespace horo::discovery
