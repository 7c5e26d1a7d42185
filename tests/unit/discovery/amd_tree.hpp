// SPDX-License-Identifier: Apache-2.0
// The kernel's files of AMD's GPUs, made up in a folder.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace horo::tests {

/// Removes the folder in the end.
class AmdTree {
 public:
  /// Two GPUs, 0 at 0000:c1:00.0 and 1 at 0000:c6:00.0, and an empty log of the kernel.
  AmdTree() {
    REQUIRE(mkdtemp(root_.data()) != nullptr);
    write("sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 64\nsimd_count 0\n");
    add_gpu(1, 0xc1, 7);
    add_gpu(2, 0xc6, 8);
    write("dev/kmsg", "");
  }

  ~AmdTree() { std::filesystem::remove_all(root_); }

  AmdTree(const AmdTree&) = delete;
  AmdTree& operator=(const AmdTree&) = delete;

  const std::string& root() const { return root_; }

  void write(const std::string& file, const std::string& text) const {
    const auto path = std::filesystem::path(root_) / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  void remove(const std::string& path) const {
    std::filesystem::remove_all(std::filesystem::path(root_) / path);
  }

  /// Adds a record to the kernel's log.
  void say(const std::string& message) const {
    std::ofstream(root_ + "/dev/kmsg", std::ios::app)
        << "4,77,1234567,-;" << message << "\n SUBSYSTEM=pci\n";
  }

  /// The second GPU falls off the bus.
  void lose_second() const {
    remove("sys/bus/pci/devices/0000:c6:00.0");
    remove("sys/class/kfd/kfd/topology/nodes/2");
  }

 private:
  void add_gpu(int node, unsigned bus, int id) const {
    const auto folder = fmt::format("sys/class/kfd/kfd/topology/nodes/{}/", node);
    write(folder + "properties",
          fmt::format("simd_count 440\nlocation_id {}\ngfx_target_version 90402\nunique_id {}\n",
                      bus << 8U, id));
    write(folder + "gpu_id", fmt::format("{}\n", 1000 + id));
    write(folder + "mem_banks/0/properties", "heap_type 1\nsize_in_bytes 68719476736\n");
    const auto device = fmt::format("sys/bus/pci/devices/0000:{:02x}:00.0/", bus);
    write(device + "product_name", "AMD Instinct MI300X\n");
    write(device + "mem_info_vram_used", "1073741824\n");
    write(device + "gpu_busy_percent", "42\n");
  }

  std::string root_ = "/tmp/horo-amd-XXXXXX";
};

}  // namespace horo::tests
