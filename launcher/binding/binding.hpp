// SPDX-License-Identifier: Apache-2.0
// The part of its host that each rank gets: hardware threads to run on, GPUs to see.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/knobs/choices.hpp"
#include "base/result.hpp"
#include "base/worker_env.hpp"
#include "discovery/topology/machine_topology.hpp"

namespace horo::launcher {

struct RankPart {
  std::vector<int> cpus;  ///< Hardware threads it may run on; empty: the same as its agent.
  std::string gpus;       ///< Value of CUDA_VISIBLE_DEVICES; empty: the variable is left alone.

  friend bool operator==(const RankPart&, const RankPart&) = default;
};

/// The parts of a host's ranks, and why they are as they are.
struct HostParts {
  std::vector<RankPart> ranks;  ///< By local rank.
  BindTo bound = BindTo::none;  ///< Never automatic.
  std::string why;              ///< "it has one memory node"; empty: the user asked for it.
  /// The CUDA_DEVICE_ORDER in which the numbers in `gpus` count; empty: the user's.
  std::string gpu_order;

  bool any() const;
};

/// A GPU under the name that CUDA_VISIBLE_DEVICES uses.
struct VisibleGpu {
  std::string id;
  std::optional<int> node;  ///< Index in Topology::nodes; nothing: it is not known.
};

/// Shares the machine among `ranks` ranks: `core` gives each an equal part of the cores, `numa` an
/// equal part of the memory nodes that have cores (one node if there are more ranks than nodes),
/// `gpu` the memory node of its GPU; for `none`, cpus stay empty. Pure.
/// Fails: unsupported, for more ranks than cores, or without a GPU.
Result<std::vector<RankPart>> share_machine(const discovery::Topology& topology, BindTo bind_to,
                                            int ranks, const std::vector<VisibleGpu>& gpus);

/// Index of a local rank's GPU among `gpus` (at least 1): one of its own if there are enough, else
/// one that it shares with neighbouring ranks. Pure.
std::size_t gpu_of(int local_rank, int ranks, std::size_t gpus);

struct PartsRequest {
  BindTo bind_to = BindTo::automatic;
  GpuMode gpus = GpuMode::off;
  int ranks = 1;
  std::optional<std::string> visible_gpus;  ///< CUDA_VISIBLE_DEVICES as it is now.
};

/// Decides for the ranks of this machine. `automatic` means gpu or numa for several ranks on a host
/// with several memory nodes, else none: an unbound job suffers least from a second one beside it.
/// Blocks: for hwloc, if ranks are to be bound.
/// Fails: as share_machine; unavailable (no hwloc), if the user asked for a binding.
Result<HostParts> share_this_machine(const PartsRequest& request);

/// "hardware threads 0-15, GPU 0", "not bound".
std::string describe(const RankPart& part);

}  // namespace horo::launcher
