// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/gpu_watch.hpp"

#include <thread>

#include <catch2/catch.hpp>

#include "tests/unit/discovery/amd_tree.hpp"

using horo::launcher::GpuWatch;

namespace {

std::string first_faults(const GpuWatch& watch, const std::string& wanted) {
  auto faults = watch.faults();
  for (; faults.find(wanted) == std::string::npos; faults = watch.faults())
    std::this_thread::yield();
  return faults;
}

}  // namespace

TEST_CASE("an agent names the AMD GPUs that have failed since it began") {
  const horo::tests::AmdTree tree;
  const GpuWatch watch(tree.root());
  // The watch begins in its own thread, and what was said before does not count.
  while (watch.faults().empty()) {
    tree.say("amdgpu 0000:c1:00.0: amdgpu: device lost from bus!");
    std::this_thread::yield();
  }
  CHECK(
      watch.faults() ==
      "GPU 0 (GPU-0000000000000007): the kernel's log says 'device lost from bus!' (it has fallen "
      "off the bus)");
  tree.lose_second();
  CHECK_THAT(first_faults(watch, "GPU 1"),
             Catch::EndsWith("; GPU 1 (GPU-0000000000000008) has no files in /sys any more (it has "
                             "fallen off the bus, or was removed)"));
}
