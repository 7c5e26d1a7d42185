// SPDX-License-Identifier: Apache-2.0
// The part of its host that each rank gets: hardware threads to run on, GPUs to see.
#pragma once

#include <string>
#include <vector>

#include "base/knobs/choices.hpp"
#include "base/result.hpp"
#include "base/worker_env.hpp"
#include "discovery/topology/machine_topology.hpp"
#include "launcher/binding/visible_gpus.hpp"

namespace horo::launcher {

struct RankPart {
  std::vector<int> cpus;  ///< Hardware threads it may run on; empty: the same as its agent.
  std::string gpus;       ///< Value of HostParts::gpu_variable; empty: it is left alone.

  friend bool operator==(const RankPart&, const RankPart&) = default;
};

/// The parts of a host's ranks, and why they are as they are.
struct HostParts {
  std::vector<RankPart> ranks;  ///< By local rank.
  BindTo bound = BindTo::none;  ///< Never automatic.
  std::string why;              ///< "it has one memory node"; empty: the user asked for it.
  const char* gpu_variable = "CUDA_VISIBLE_DEVICES";  ///< Or HIP_VISIBLE_DEVICES.
  /// The CUDA_DEVICE_ORDER in which the numbers in `gpus` count; empty: the user's.
  std::string gpu_order;

  bool any() const;
};

/// Shares the machine among `ranks` ranks: `core` gives each an equal part of the cores, `numa` an
/// equal part of the memory nodes that have cores (one node if there are more ranks than nodes),
/// `gpu` the cores nearest to its GPU; for `none`, cpus stay empty. Pure.
/// Fails: unsupported, for more ranks than cores, without a GPU, or where no core near it is
/// usable.
Result<std::vector<RankPart>> share_machine(const discovery::Topology& topology, BindTo bind_to,
                                            int ranks, const std::vector<VisibleGpu>& gpus);

struct PartsRequest {
  BindTo bind_to = BindTo::automatic;
  GpuMode gpus = GpuMode::off;
  int ranks = 1;
  GpuVariables visible{};
};

/// Decides for the ranks of this machine. `automatic` means gpu or numa for several ranks on a host
/// with several memory nodes, else none: an unbound job suffers least from a second one beside it.
/// Blocks: for hwloc, if ranks are to be bound, and for NVIDIA's driver, if files do not tell where
/// a GPU is. Fails: as share_machine; unavailable (no hwloc), not_found (no such GPU), unsupported
/// (it is not known where the GPU is), if the user asked for a binding.
Result<HostParts> share_this_machine(const PartsRequest& request);

/// "hardware threads 0-15, GPU 0", "not bound".
std::string describe(const RankPart& part);

}  // namespace horo::launcher
