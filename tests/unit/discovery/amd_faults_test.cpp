// SPDX-License-Identifier: Apache-2.0
#include "discovery/amd_faults.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/discovery/amd_tree.hpp"

using horo::discovery::amd_gpus;
using horo::discovery::AmdFaults;
using horo::discovery::meaning_of;
using horo::tests::AmdTree;

TEST_CASE("an AMD GPU is read with its temperature and the processes on it") {
  const AmdTree tree;
  const std::string sensors = "sys/bus/pci/devices/0000:c1:00.0/hwmon/hwmon3/";
  tree.write(sensors + "temp1_input", "90000\n");
  tree.write(sensors + "temp1_label", "junction\n");
  tree.write(sensors + "temp2_input", "61000\n");
  tree.write(sensors + "temp2_label", "edge\n");
  tree.write("sys/bus/pci/devices/0000:c6:00.0/hwmon/hwmon4/temp2_input", "75000\n");
  tree.write("sys/class/kfd/kfd/proc/4711/vram_1007", "4096\n");
  tree.write("sys/class/kfd/kfd/proc/4711/vram_1008", "0\n");
  tree.write("sys/class/kfd/kfd/proc/4712/vram_1008", "8192\n");
  const auto gpus = amd_gpus(tree.root());
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[0].celsius == 61);
  CHECK(gpus[0].processes == std::vector<int>{4711});
  CHECK(gpus[0].busy == 42);
  CHECK(gpus[0].used == std::uint64_t{1} << 30U);
  CHECK(gpus[1].celsius == 75);
  CHECK(gpus[1].processes == std::vector<int>{4712});
}

TEST_CASE("a message of amdgpu has a meaning only if it tells of a failure") {
  CHECK(meaning_of("amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!") == "it is reset");
  CHECK(meaning_of("amdgpu: device lost from bus!") == "it has fallen off the bus");
  CHECK(meaning_of("amdgpu: ring gfx_0.0.0 timeout, signaled seq=3, emitted seq=5") ==
        "its work does not end");
  CHECK(meaning_of("amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:88 vmid:4)") ==
        "a kernel has used an address that is not mapped");
  for (const auto* const text : {"2 uncorrectable hardware errors detected in umc block",
                                 "socket: 0 1 new uncorrectable hardware errors detected in gfx"})
    CHECK(meaning_of(text) == "an uncorrectable error of its hardware");
  for (const auto* const text : {"no uncorrectable hardware errors detected in umc block",
                                 "0 uncorrectable hardware errors detected in umc block",
                                 "3 correctable hardware errors detected in umc block",
                                 "uncorrectable hardware errors detected",
                                 "GPU reset(1) succeeded!", "SMU is initialized successfully!", ""})
    CHECK(meaning_of(text).empty());
}

TEST_CASE("failures in the kernel's log name the GPU with its index and UUID, once") {
  const AmdTree tree;
  tree.say("amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!");  // It is of another job.
  AmdFaults faults(tree.root());
  REQUIRE(faults.log());
  CHECK(faults.look().empty());
  tree.say("amdgpu 0000:c6:00.0: amdgpu: GPU reset begin!");
  tree.say("amdgpu 0000:c9:00.0: amdgpu: GPU reset begin!");  // A GPU that does not compute.
  tree.say("amdgpu 0000:c6:00.0: amdgpu: GPU reset(1) succeeded!");
  CHECK(faults.look() == std::vector<std::string>{"GPU 1 (GPU-0000000000000008): the kernel's log "
                                                  "says 'GPU reset begin!' (it is reset)"});
  CHECK(faults.look().empty());
}

TEST_CASE("a GPU whose files are gone is named, once") {
  const AmdTree tree;
  AmdFaults faults(tree.root());
  CHECK(faults.look().empty());
  tree.lose_second();
  CHECK(faults.look() ==
        std::vector<std::string>{"GPU 1 (GPU-0000000000000008) has no files in /sys any more (it "
                                 "has fallen off the bus, or was removed)"});
  CHECK(faults.look().empty());
}

TEST_CASE("without the kernel's log, missing files are still noticed") {
  const AmdTree tree;
  tree.remove("dev/kmsg");
  AmdFaults faults(tree.root());
  REQUIRE_FALSE(faults.log());
  CHECK_THAT(faults.log().error().message, Catch::Contains("/dev/kmsg"));
  tree.lose_second();
  CHECK(faults.look().size() == 1);
}
