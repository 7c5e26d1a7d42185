// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "discovery/source.hpp"

namespace horo::discovery {

/// The allocation of the Slurm job that this process runs in, from its environment; of a
/// heterogeneous job all components, in their order. A host's slots are its tasks; GPUs where the
/// job asked for those and for no tasks.
class SlurmSource final : public HostSource {
 public:
  /// Hosts get up to `ranks_per_host` slots, as far as their CPUs or GPUs reach; 0: as said above.
  SlurmSource(Lookup environment, int ranks_per_host);

  /// Whether this process runs in a Slurm job.
  static bool is_here(const Lookup& environment);

  std::string_view name() const override { return name_; }

  /// Blocks: no. Fails: unavailable, naming the variables that are missing or make no sense.
  Result<Listing> list(Deadline deadline) override;

 private:
  Lookup environment_;
  int ranks_per_host_;
  std::string name_;
};

/// The nodes of the job that this process runs in, by component of a heterogeneous job; a job of
/// another kind is its only component. Fails: as SlurmSource::list.
Result<std::vector<std::vector<std::string>>> slurm_nodes(const Lookup& environment);

/// Slurm's short form of a number per node, "2(x3),1". Fails: invalid_argument; more than kMaxHosts
/// numbers are refused before any is made.
Result<std::vector<int>> parse_counts(std::string_view text);

}  // namespace horo::discovery
