// SPDX-License-Identifier: Apache-2.0
#include "launcher/binding/binding.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include <catch2/catch.hpp>

#include "discovery/this_machine.hpp"

using namespace horo;
using namespace horo::launcher;
using discovery::Topology;

namespace {

using Cpus = std::vector<int>;

Topology machine(const std::string& description) {
  return discovery::synthetic_topology(description).value();
}

std::vector<Cpus> cpus_of(const Topology& topology, BindTo bind_to, int ranks,
                          const std::vector<VisibleGpu>& gpus = {}) {
  std::vector<Cpus> cpus;
  const auto parts = share_machine(topology, bind_to, ranks, gpus).value();
  for (const auto& part : parts) cpus.push_back(part.cpus);
  return cpus;
}

}  // namespace

TEST_CASE("with --bind-to core, each rank gets an equal part of the cores with all their threads") {
  const auto topology = machine("numa:2 core:2 pu:2");
  CHECK(cpus_of(topology, BindTo::core, 4) == std::vector<Cpus>{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  CHECK(cpus_of(topology, BindTo::core, 2) == std::vector<Cpus>{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(cpus_of(topology, BindTo::core, 3) == std::vector<Cpus>{{0, 1}, {2, 3}, {4, 5, 6, 7}});
  const auto over = share_machine(topology, BindTo::core, 5, {});
  REQUIRE(!over);
  CHECK_THAT(over.error().message,
             Catch::Contains("5 ranks want a core each, 4 cores may be used"));
}

TEST_CASE(
    "with --bind-to numa, ranks are spread over memory nodes and share them if there are fewer") {
  const auto topology = machine("numa:2 core:2 pu:1");
  CHECK(cpus_of(topology, BindTo::numa, 4) == std::vector<Cpus>{{0, 1}, {0, 1}, {2, 3}, {2, 3}});
  CHECK(cpus_of(topology, BindTo::numa, 1) == std::vector<Cpus>{{0, 1, 2, 3}});
  // A memory node without a usable core does not count.
  auto half = topology;
  half.cores.erase(half.cores.begin(), half.cores.begin() + 2);
  CHECK(cpus_of(half, BindTo::numa, 2) == std::vector<Cpus>{{2, 3}, {2, 3}});
}

TEST_CASE("with --bind-to gpu, a rank runs on the usable cores near its GPU") {
  const auto topology = machine("numa:2 core:2 pu:1");
  const std::vector<VisibleGpu> gpus{{"0", {2, 3}}, {"1", {0, 1, 8, 9}}, {"GPU-a", {1, 2}}};
  CHECK(cpus_of(topology, BindTo::gpu, 3, gpus) == std::vector<Cpus>{{2, 3}, {0, 1}, {1, 2}});
  CHECK_THAT(share_machine(topology, BindTo::gpu, 1, {}).error().message,
             Catch::Contains("no GPU"));
  CHECK_THAT(share_machine(topology, BindTo::gpu, 1, {{"7", {8, 9}}}).error().message,
             Catch::Contains("GPU 7 is near hardware threads 8-9, and ranks may run on 0-3 only"));
}

TEST_CASE("a local rank has a GPU of its own if there are enough") {
  CHECK(gpu_of(3, 4, 8) == 3);
  CHECK(gpu_of(3, 4, 4) == 3);
  CHECK(gpu_of(0, 4, 2) == 0);
  CHECK(gpu_of(1, 4, 2) == 0);
  CHECK(gpu_of(3, 4, 2) == 1);
}

TEST_CASE("on any machine, every core belongs to exactly one rank, and parts are equal") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto draw = [&](int most) { return std::uniform_int_distribution(1, most)(random); };
  for (int round = 0; round < 30; ++round) {
    const auto topology = machine(fmt::format("numa:{} core:{} pu:{}", draw(4), draw(8), draw(2)));
    const int cores = static_cast<int>(topology.cores.size());
    const int ranks = draw(cores);
    INFO(cores << " cores, " << ranks << " ranks");
    Cpus all;
    std::size_t least = SIZE_MAX;
    std::size_t most = 0;
    for (const auto& cpus : cpus_of(topology, BindTo::core, ranks)) {
      least = std::min(least, cpus.size());
      most = std::max(most, cpus.size());
      all.insert(all.end(), cpus.begin(), cpus.end());
    }
    CHECK(std::is_sorted(all.begin(), all.end()));
    CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
    CHECK(all.size() == topology.cores.size() * topology.cores.front().cpus.size());
    CHECK(most - least <= topology.cores.front().cpus.size());
  }
}

TEST_CASE("automatic binding binds nothing on a host with one memory node or one rank") {
  const auto alone = share_this_machine({.bind_to = BindTo::automatic, .ranks = 1}).value();
  CHECK(alone.bound == BindTo::none);
  CHECK(!alone.any());
  CHECK(alone.why == "it has one rank");
}

TEST_CASE("GPUs in CUDA_VISIBLE_DEVICES are given to ranks in that order, under any names") {
  const auto parts = share_this_machine({.bind_to = BindTo::none,
                                         .gpus = GpuMode::automatic,
                                         .ranks = 2,
                                         .visible = {.cuda = "GPU-7,3"}})
                         .value();
  CHECK(parts.ranks[0].gpus == "GPU-7");
  CHECK(parts.ranks[1].gpus == "3");
  CHECK(parts.gpu_order.empty());
  CHECK(!share_this_machine({.bind_to = BindTo::none,
                             .gpus = GpuMode::automatic,
                             .ranks = 2,
                             .visible = {.cuda = ""}})
             .value()
             .any());
}

TEST_CASE("AMD's variables are distributed under HIP's name, counted in ROCm's list") {
  PartsRequest request{.bind_to = BindTo::none, .gpus = GpuMode::automatic, .ranks = 2};
  request.visible = {.hip = "4,5"};
  auto parts = share_this_machine(request).value();
  CHECK(parts.ranks[1].gpus == "5");
  CHECK(parts.gpu_variable == std::string("HIP_VISIBLE_DEVICES"));
  CHECK(parts.gpu_order.empty());
  request.visible = {.rocr = "GPU-7,3"};
  parts = share_this_machine(request).value();
  CHECK(parts.ranks[0].gpus == "0");
  CHECK(parts.ranks[1].gpus == "1");
  CHECK(parts.gpu_variable == std::string("HIP_VISIBLE_DEVICES"));
}

TEST_CASE("a host with GPUs of AMD only is known by the kernel's files, and its GPUs are located") {
  std::string root = "/tmp/horo-amd-XXXXXX";
  REQUIRE(mkdtemp(root.data()) != nullptr);
  const std::filesystem::path folder = root;
  const auto write = [](const std::filesystem::path& file, const std::string& text) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  const auto nodes = folder / "sys/class/kfd/kfd/topology/nodes";
  write(nodes / "0/properties", "simd_count 0\n");
  write(nodes / "1/properties", "simd_count 304\nlocation_id 256\n");
  write(nodes / "2/properties", "simd_count 304\nlocation_id 512\nunique_id 7\n");
  write(folder / "sys/bus/pci/devices/0000:01:00.0/local_cpulist", "0-1\n");
  write(folder / "sys/bus/pci/devices/0000:02:00.0/local_cpulist", "2-3\n");
  auto visible = visible_gpus({}, AskDriver::no, root);
  CHECK(visible.variable == std::string("HIP_VISIBLE_DEVICES"));
  REQUIRE(visible.gpus.size() == 2);
  CHECK(visible.gpus[1].id == "1");
  REQUIRE(locate(visible, 2, root));
  CHECK(visible.gpus[1].cpus == Cpus{2, 3});
  // Numbers of HIP count in ROCm's list.
  auto listed = visible_gpus({.rocr = "GPU-0000000000000007,0"}, AskDriver::no, root);
  REQUIRE(locate(listed, 2, root));
  CHECK(listed.gpus[0].cpus == Cpus{2, 3});
  CHECK(listed.gpus[1].cpus == Cpus{0, 1});
  std::filesystem::remove_all(folder);
}
