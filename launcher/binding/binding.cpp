// SPDX-License-Identifier: Apache-2.0
#include "launcher/binding/binding.hpp"

#include <algorithm>

#include "discovery/gpus.hpp"

namespace horo::launcher {

using discovery::Topology;

namespace {

/// A range of neighbouring things, [first, end).
struct Span {
  std::size_t first;
  std::size_t end;
};

/// Part `index` of `parts` of `size` things. Sizes differ by one at most; with more parts than
/// things, neighbouring parts share one.
Span part_of(std::size_t size, std::size_t index, std::size_t parts) {
  const auto first = index * size / parts;
  return {.first = first, .end = std::max(first + 1, (index + 1) * size / parts)};
}

std::vector<int> cpus_of_node(const Topology& topology, int node) {
  std::vector<int> cpus;
  for (const auto& core : topology.cores) {
    if (core.node == node) cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
  }
  return cpus;
}

/// Memory nodes that have a usable core.
std::vector<int> nodes_with_cores(const Topology& topology) {
  std::vector<int> nodes;
  for (const auto& core : topology.cores) {
    if (nodes.empty() || nodes.back() != core.node) nodes.push_back(core.node);
  }
  return nodes;
}

Result<std::vector<int>> share_of_cores(const Topology& topology, std::size_t rank,
                                        std::size_t ranks) {
  if (ranks > topology.cores.size()) {
    return fail(Errc::unsupported,
                "{} ranks want a core each, {} cores may be used; --bind-to numa or none shares "
                "them",
                ranks, topology.cores.size());
  }
  const auto part = part_of(topology.cores.size(), rank, ranks);
  std::vector<int> cpus;
  for (auto i = part.first; i < part.end; ++i)
    cpus.insert(cpus.end(), topology.cores[i].cpus.begin(), topology.cores[i].cpus.end());
  return cpus;
}

std::vector<int> share_of_nodes(const Topology& topology, std::size_t rank, std::size_t ranks) {
  const auto nodes = nodes_with_cores(topology);
  const auto part = part_of(nodes.size(), rank, ranks);
  std::vector<int> cpus;
  for (auto i = part.first; i < part.end; ++i) {
    const auto more = cpus_of_node(topology, nodes[i]);
    cpus.insert(cpus.end(), more.begin(), more.end());
  }
  return cpus;
}

Result<std::vector<int>> near_gpu(const Topology& topology, std::size_t rank, std::size_t ranks,
                                  const std::vector<VisibleGpu>& gpus) {
  if (gpus.empty()) {
    return fail(Errc::unsupported,
                "--bind-to gpu finds no NVIDIA GPU; --bind-to numa or core needs none");
  }
  const auto& gpu = gpus[gpu_of(static_cast<int>(rank), static_cast<int>(ranks), gpus.size())];
  auto cpus = gpu.node ? cpus_of_node(topology, *gpu.node) : std::vector<int>{};
  // The GPU is near no node, or near one without cores: any core is as good.
  if (cpus.empty()) cpus = share_of_nodes(topology, 0, 1);
  return cpus;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start < list.size();) {
    const auto end = std::min(list.find(',', start), list.size());
    if (end > start) parts.push_back(list.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

/// The GPUs that this job's ranks may use; their nodes are not filled in.
std::vector<VisibleGpu> list_gpus(const PartsRequest& request) {
  std::vector<VisibleGpu> gpus;
  if (request.visible_gpus) {
    for (const auto& id : split(*request.visible_gpus)) gpus.push_back({.id = id, .node = {}});
    return gpus;
  }
  const auto count = discovery::nvidia_gpus().size();
  for (std::size_t i = 0; i < count; ++i) gpus.push_back({.id = std::to_string(i), .node = {}});
  return gpus;
}

/// Fills in the nodes. An id that is a number is an index in PCI order; other ids get no node.
void find_nodes(std::vector<VisibleGpu>& gpus, const Topology& topology) {
  const auto addresses = discovery::nvidia_gpus();
  for (auto& gpu : gpus) {
    if (gpu.id.find_first_not_of("0123456789") != std::string::npos || gpu.id.size() > 4) continue;
    const auto index = static_cast<std::size_t>(std::stoul(gpu.id));
    if (index >= addresses.size()) continue;
    for (const auto& device : topology.of(discovery::DeviceKind::gpu)) {
      if (device.address == addresses[index]) gpu.node = device.node;
    }
  }
}

struct Choice {
  BindTo bind_to;
  std::string why;
};

Choice choose(const PartsRequest& request, bool has_gpus) {
  if (request.bind_to != BindTo::automatic) return {request.bind_to, {}};
  if (request.ranks == 1) return {BindTo::none, "it has one rank"};
  if (discovery::count_memory_nodes() == 1) return {BindTo::none, "it has one memory node"};
  if (request.gpus == GpuMode::automatic && has_gpus)
    return {BindTo::gpu, "it has several memory nodes, and GPUs"};
  return {BindTo::numa, "it has several memory nodes"};
}

}  // namespace

bool HostParts::any() const {
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const RankPart& part) { return part != RankPart{}; });
}

std::size_t gpu_of(int local_rank, int ranks, std::size_t gpus) {
  const auto rank = static_cast<std::size_t>(local_rank);
  const auto all = static_cast<std::size_t>(ranks);
  return all <= gpus ? rank : rank * gpus / all;
}

Result<std::vector<RankPart>> share_machine(const Topology& topology, BindTo bind_to, int ranks,
                                            const std::vector<VisibleGpu>& gpus) {
  const auto count = static_cast<std::size_t>(ranks);
  std::vector<RankPart> parts(count);
  for (std::size_t rank = 0; rank < count; ++rank) {
    auto& cpus = parts[rank].cpus;
    switch (bind_to) {
      case BindTo::automatic:
      case BindTo::none:
        break;
      case BindTo::core: {
        HORO_TRY(cpus, share_of_cores(topology, rank, count));
        break;
      }
      case BindTo::numa:
        cpus = share_of_nodes(topology, rank, count);
        break;
      case BindTo::gpu: {
        HORO_TRY(cpus, near_gpu(topology, rank, count, gpus));
        break;
      }
    }
  }
  return parts;
}

Result<HostParts> share_this_machine(const PartsRequest& request) {
  const bool wants_gpus = request.gpus == GpuMode::automatic || request.bind_to == BindTo::gpu;
  auto gpus = wants_gpus ? list_gpus(request) : std::vector<VisibleGpu>{};
  auto choice = choose(request, !gpus.empty());
  HostParts parts{.ranks = std::vector<RankPart>(static_cast<std::size_t>(request.ranks)),
                  .bound = choice.bind_to,
                  .why = std::move(choice.why),
                  .gpu_order = {}};
  if (choice.bind_to != BindTo::none) {
    const auto topology = discovery::read_topology(
        choice.bind_to == BindTo::gpu ? discovery::Detail::devices : discovery::Detail::cores);
    if (topology) {
      find_nodes(gpus, *topology);
      HORO_TRY(parts.ranks, share_machine(*topology, choice.bind_to, request.ranks, gpus));
    } else if (request.bind_to == BindTo::automatic) {
      parts.bound = BindTo::none;
      parts.why = topology.error().message;
    } else {
      return Failure(topology.error());
    }
  }
  if (request.gpus == GpuMode::off || gpus.empty()) return parts;
  for (int rank = 0; rank < request.ranks; ++rank)
    parts.ranks[static_cast<std::size_t>(rank)].gpus =
        gpus[gpu_of(rank, request.ranks, gpus.size())].id;
  if (!request.visible_gpus) parts.gpu_order = "PCI_BUS_ID";
  return parts;
}

std::string describe(const RankPart& part) {
  auto text = part.cpus.empty()
                  ? std::string("not bound")
                  : fmt::format("hardware threads {}", discovery::describe_cpus(part.cpus));
  if (!part.gpus.empty()) text += fmt::format(", GPU {}", part.gpus);
  return text;
}

}  // namespace horo::launcher
