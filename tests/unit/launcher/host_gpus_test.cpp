// SPDX-License-Identifier: Apache-2.0
#include "launcher/host_gpus.hpp"

#include <chrono>

#include <catch2/catch.hpp>

#include "tests/unit/discovery/amd_tree.hpp"

using namespace horo;

namespace {

constexpr Duration kLong = std::chrono::minutes(1);

}  // namespace

TEST_CASE("a view of a job shows AMD's GPUs, and the ranks on them") {
  const tests::AmdTree tree;
  tree.write("sys/bus/pci/devices/0000:c6:00.0/hwmon/hwmon4/temp1_input", "61000\n");
  tree.write("sys/class/kfd/kfd/proc/4712/vram_1008", "8192\n");
  launcher::HostGpus gpus(tree.root());
  timeline::LiveRow row;
  row.rank = 5;
  row.pid = 4712;
  const auto view = gpus.look({row}, kLong);
  CHECK(view.problem.empty());
  REQUIRE(view.gpus.size() == 2);
  CHECK(view.gpus[0].index == 0);
  CHECK(view.gpus[0].ranks.empty());
  CHECK(view.gpus[0].celsius == -1);
  CHECK(view.gpus[1].name == "AMD Instinct MI300X");
  CHECK(view.gpus[1].uuid == "GPU-0000000000000008");
  CHECK(view.gpus[1].busy == 42);
  CHECK(view.gpus[1].used == std::uint64_t{1} << 30U);
  CHECK(view.gpus[1].memory == std::uint64_t{64} << 30U);
  CHECK(view.gpus[1].celsius == 61);
  CHECK(view.gpus[1].ranks == std::vector<int>{5});
}

TEST_CASE("an AMD GPU that is lost stays in the view, with the reason") {
  const tests::AmdTree tree;
  launcher::HostGpus gpus(tree.root());
  REQUIRE(gpus.look({}, kLong).gpus.size() == 2);
  // The first one: the kernel counts the others anew, and the view does not.
  tree.remove("sys/class/kfd/kfd/topology/nodes/1");
  const auto view = gpus.look({}, kLong);
  REQUIRE(view.gpus.size() == 2);
  CHECK_THAT(view.gpus[0].problem, Catch::Contains("fallen off the bus"));
  CHECK(view.gpus[1].problem.empty());
  CHECK(view.gpus[1].index == 1);
}

TEST_CASE("a host without a driver for GPUs shows none") {
  const tests::AmdTree tree;
  tree.remove("sys/class/kfd");
  launcher::HostGpus gpus(tree.root());
  const auto view = gpus.look({}, kLong);
  CHECK(view.gpus.empty());
  CHECK(view.problem.empty());
}
