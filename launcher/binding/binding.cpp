// SPDX-License-Identifier: Apache-2.0
#include "launcher/binding/binding.hpp"

#include <algorithm>

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

Failure no_gpu(const GpuVariables& variables) {
  if (variables.cuda || variables.hip) {
    return fail(Errc::unsupported,
                "--bind-to gpu finds no GPU: {} is '{}'; name GPUs there, or unset it",
                variables.cuda ? "CUDA_VISIBLE_DEVICES" : "HIP_VISIBLE_DEVICES",
                variables.cuda ? *variables.cuda : *variables.hip);
  }
  return fail(Errc::unsupported, "--bind-to gpu finds no GPU; --bind-to numa or core needs none");
}

Result<std::vector<int>> near_gpu(const Topology& topology, std::size_t rank, std::size_t ranks,
                                  const std::vector<VisibleGpu>& gpus) {
  if (gpus.empty()) return no_gpu({});
  const auto& gpu = gpus[gpu_of(static_cast<int>(rank), static_cast<int>(ranks), gpus.size())];
  std::vector<int> usable;
  for (const auto& core : topology.cores)
    usable.insert(usable.end(), core.cpus.begin(), core.cpus.end());
  std::vector<int> cpus;
  for (const int cpu : usable) {
    if (std::find(gpu.cpus.begin(), gpu.cpus.end(), cpu) != gpu.cpus.end()) cpus.push_back(cpu);
  }
  if (cpus.empty()) {
    return fail(Errc::unsupported,
                "--bind-to gpu: GPU {} is near hardware threads {}, and ranks may run on {} only; "
                "--bind-to numa or core uses these",
                gpu.id, discovery::describe_cpus(gpu.cpus), discovery::describe_cpus(usable));
  }
  return cpus;
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

namespace {

/// By `parts.bound`; where the user has not asked for GPUs' cores and they cannot be had, by memory
/// nodes.
Status bind_ranks(const Topology& topology, const PartsRequest& request,
                  const std::vector<VisibleGpu>& gpus, HostParts& parts) {
  auto shared = share_machine(topology, parts.bound, request.ranks, gpus);
  if (!shared && parts.bound == BindTo::gpu && request.bind_to == BindTo::automatic) {
    parts.bound = BindTo::numa;
    parts.why += "; " + shared.error().message;
    shared = share_machine(topology, parts.bound, request.ranks, gpus);
  }
  HORO_TRY(parts.ranks, std::move(shared));
  return {};
}

void show_gpus(const VisibleGpus& visible, HostParts& parts) {
  const auto& gpus = visible.gpus;
  if (gpus.empty()) return;
  const auto ranks = static_cast<int>(parts.ranks.size());
  for (int rank = 0; rank < ranks; ++rank)
    parts.ranks[static_cast<std::size_t>(rank)].gpus = gpus[gpu_of(rank, ranks, gpus.size())].id;
  if (visible.by_bus) parts.gpu_order = "PCI_BUS_ID";
}

}  // namespace

Result<HostParts> share_this_machine(const PartsRequest& request) {
  const bool binds_to_gpu = request.bind_to == BindTo::gpu;
  VisibleGpus visible;
  if (request.gpus == GpuMode::automatic || binds_to_gpu)
    visible = visible_gpus(request.visible, binds_to_gpu ? AskDriver::yes : AskDriver::no);
  if (binds_to_gpu && visible.gpus.empty()) return no_gpu(request.visible);
  auto choice = choose(request, !visible.gpus.empty());
  if (choice.bind_to == BindTo::gpu) {
    const auto located = locate(visible, request.ranks);
    if (!located && binds_to_gpu) return Failure(located.error());
    if (!located) choice = {BindTo::numa, choice.why + "; " + located.error().message};
  }
  HostParts parts{.ranks = std::vector<RankPart>(static_cast<std::size_t>(request.ranks)),
                  .bound = choice.bind_to,
                  .why = std::move(choice.why),
                  .gpu_variable = visible.variable,
                  .gpu_order = {}};
  if (choice.bind_to != BindTo::none) {
    const auto topology = discovery::read_topology(discovery::Detail::cores);
    if (topology) {
      HORO_TRY_STATUS(bind_ranks(*topology, request, visible.gpus, parts));
    } else if (request.bind_to == BindTo::automatic) {
      parts.bound = BindTo::none;
      parts.why = topology.error().message;
    } else {
      return Failure(topology.error());
    }
  }
  if (request.gpus == GpuMode::automatic) show_gpus(visible, parts);
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
