// SPDX-License-Identifier: Apache-2.0
// What of its host each rank gets: hardware threads to run on, GPUs to see.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/knobs/choices.hpp"
#include "base/result.hpp"
#include "base/worker_env.hpp"
#include "discovery/topology/topology.hpp"

namespace horo::launcher {

/// One rank's part.
struct RankPart {
  std::vector<int> cpus;  ///< Hardware threads it may run on; empty: as its agent.
  std::string gpus;       ///< What CUDA_VISIBLE_DEVICES says; empty: it is left alone.

  friend bool operator==(const RankPart&, const RankPart&) = default;
};

/// The parts of a host's ranks, and what decided.
struct HostParts {
  std::vector<RankPart> ranks;  ///< By local rank.
  BindTo bound = BindTo::none;  ///< Never automatic.
  std::string why;              ///< "the host has one memory node"; empty: it was asked for.
  /// CUDA_DEVICE_ORDER that the numbers in `gpus` count in; empty: the user's.
  std::string gpu_order;

  bool any() const;
};

/// A GPU as CUDA is told of it.
struct VisibleGpu {
  std::string id;
  std::optional<int> node;  ///< Index in Topology::nodes; nothing: not known.
};

/// Shares the machine among `ranks` ranks: `core` gives each an equal part of the cores, `numa` an
/// equal part of the memory nodes that have cores (one, where there are more ranks than nodes),
/// `gpu` the node of its GPU; cpus stay empty for `none`. Pure.
/// Fails: unsupported, when there is not enough of it: more ranks than cores, no GPU.
Result<std::vector<RankPart>> share_machine(const discovery::Topology& topology, BindTo bind_to,
                                            int ranks, const std::vector<VisibleGpu>& gpus);

/// The GPU of a local rank among `gpus`, of which there is at least one: its own while there are
/// enough, else one that it shares with its neighbours. Pure.
std::size_t gpu_of(int local_rank, int ranks, std::size_t gpus);

struct PartsRequest {
  BindTo bind_to = BindTo::automatic;
  GpuMode gpus = GpuMode::off;
  int ranks = 1;
  std::optional<std::string> visible_gpus;  ///< CUDA_VISIBLE_DEVICES as it is now.
};

/// For the ranks of this machine. `automatic` is gpu or numa for several ranks on a host with
/// several memory nodes, else none: where a second job may run beside this one, it costs least.
/// Blocks: for hwloc, where something is to be bound.
/// Fails: as share_machine, and unavailable (no hwloc) for what was asked for.
Result<HostParts> share_this_machine(const PartsRequest& request);

/// "hardware threads 0-15, GPU 0", "not bound".
std::string describe(const RankPart& part);

}  // namespace horo::launcher
