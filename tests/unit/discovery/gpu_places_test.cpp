// SPDX-License-Identifier: Apache-2.0
#include "discovery/gpu_places.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "discovery/amd_gpus.hpp"
#include "discovery/cpu_list.hpp"

using namespace horo;
using namespace horo::discovery;

namespace {

/// A folder that stands for the root of a machine's files.
class Root {
 public:
  Root() { REQUIRE(mkdtemp(path_.data()) != nullptr); }

  ~Root() { std::filesystem::remove_all(path_); }

  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/horo-places-XXXXXX";
};

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

int index_of(const std::vector<GpuPlace>& places, std::string_view name) {
  const auto* const found = find_gpu(places, name);
  return found == nullptr ? -1 : found->index;
}

}  // namespace

TEST_CASE("numbers in the kernel's form are read up to the first fault") {
  CHECK(parse_cpus("0-3,8\n") == std::vector<int>{0, 1, 2, 3, 8});
  CHECK(parse_cpus("5") == std::vector<int>{5});
  CHECK(parse_cpus("").empty());
  CHECK(parse_cpus("\n").empty());
  CHECK(parse_cpus("1,x") == std::vector<int>{1});
  CHECK(parse_cpus("3-1,7") == std::vector<int>{7});
  CHECK(parse_cpus("0-9999999").empty());
  CHECK(parse_cpus("-1").empty());
}

TEST_CASE("the driver's files and the kernel's tell UUIDs and near hardware threads") {
  const Root root;
  const std::filesystem::path folder = root.path();
  const auto driver = folder / "proc/driver/nvidia/gpus";
  const auto devices = folder / "sys/bus/pci/devices";
  write(driver / "0000:81:00.0/information",
        "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-b\nBus: x\n");
  write(driver / "0000:3b:00.0/information", "GPU UUID: \t GPU-a \n");
  write(driver / "0000:c1:00.0/information", "GPU UUID: \t GPU-\?\?\?\?\?\?\?\?-\?\?\?\?\n");
  write(devices / "0000:3b:00.0/local_cpulist", "0-1\n");
  write(devices / "0000:81:00.0/local_cpulist", "2-3\n");
  const auto places = nvidia_gpu_places(root.path());
  REQUIRE(places.size() == 3);
  CHECK(places[0].index == 0);
  CHECK(places[0].uuid == "GPU-a");
  CHECK(places[0].cpus == std::vector<int>{0, 1});
  CHECK(places[1].uuid == "GPU-b");
  CHECK(places[1].cpus == std::vector<int>{2, 3});
  CHECK(places[2].uuid.empty());
  CHECK(places[2].cpus.empty());
  CHECK(nvidia_gpu_places(root.path() + "/nothing").empty());
}

TEST_CASE("the kernel's files tell AMD's GPUs in ROCm's order") {
  const Root root;
  const std::filesystem::path folder = root.path();
  const auto nodes = folder / "sys/class/kfd/kfd/topology/nodes";
  write(nodes / "0/properties", "cpu_cores_count 64\nsimd_count 0\nlocation_id 0\n");
  write(nodes / "1/properties",
        "simd_count 304\nlocation_id 49408\ndomain 1\nunique_id 1311768467463790320\n");
  write(nodes / "2/properties", "simd_count 304\nlocation_id 768\ndomain 0\n");
  write(folder / "sys/bus/pci/devices/0001:c1:00.0/local_cpulist", "32-33\n");
  write(folder / "sys/bus/pci/devices/0000:03:00.0/local_cpulist", "0-1\n");
  const auto places = amd_gpu_places(root.path());
  REQUIRE(places.size() == 2);
  CHECK(places[0].index == 0);
  CHECK(places[0].uuid == "GPU-123456789abcdef0");
  CHECK(places[0].cpus == std::vector<int>{32, 33});
  CHECK(places[1].uuid.empty());
  CHECK(places[1].cpus == std::vector<int>{0, 1});
  CHECK(amd_gpu_places(root.path() + "/nothing").empty());
}

TEST_CASE("GPUs of AMD that a container hides do not count, and those behind them do") {
  const Root root;
  const std::filesystem::path folder = root.path();
  const auto nodes = folder / "sys/class/kfd/kfd/topology/nodes";
  write(nodes / "0/properties", "simd_count 0\n");
  // Node 1 is hidden: its description cannot be read.
  std::filesystem::create_directories(nodes / "1/properties");
  write(nodes / "2/properties", "simd_count 304\nunique_id 2\n");
  write(nodes / "10/properties", "simd_count 304\nunique_id 10\n");
  const auto gpus = amd_gpus(root.path());
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[0].uuid == "GPU-0000000000000002");
  CHECK(gpus[1].uuid == "GPU-000000000000000a");
  CHECK(gpus[1].index == 1);
}

TEST_CASE("the kernel's files tell model, architecture, memory and use of AMD's GPUs") {
  const Root root;
  const std::filesystem::path folder = root.path();
  const auto nodes = folder / "sys/class/kfd/kfd/topology/nodes";
  write(nodes / "1/properties",
        "simd_count 440\nlocation_id 49408\ndomain 0\ngfx_target_version 90010\n");
  write(nodes / "1/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 68702699520\n");
  write(nodes / "1/mem_banks/1/properties", "heap_type 0\nsize_in_bytes 4096\n");
  write(nodes / "2/properties", "simd_count 8\nlocation_id 768\ngfx_target_version 110003\n");
  const auto device = folder / "sys/bus/pci/devices/0000:c1:00.0";
  write(device / "product_name", "AMD INSTINCT MI250X\n");
  write(device / "mem_info_vram_used", "1073741824\n");
  write(device / "gpu_busy_percent", "37\n");
  const auto gpus = amd_gpus(root.path());
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[0].name == "AMD INSTINCT MI250X");
  CHECK(gpus[0].target == "gfx90a");
  CHECK(gpus[0].pci == "0000:c1:00.0");
  CHECK(gpus[0].memory == 68702699520U);
  CHECK(gpus[0].used == 1073741824U);
  CHECK(gpus[0].busy == 37);
  CHECK(gpus[1].name == "gfx1103");
  CHECK(gpus[1].memory == 0);
  CHECK(gpus[1].busy == -1);
}

TEST_CASE("CUDA's names of a GPU: an index, a UUID or its beginning, a MIG device") {
  const std::vector<GpuPlace> places{
      {.index = 0, .uuid = "GPU-6fd0", .slices = {}, .cpus = {}},
      {.index = 1, .uuid = "GPU-6f11", .slices = {}, .cpus = {}},
      {.index = 2, .uuid = "GPU-8888", .slices = {"MIG-1", "MIG-2"}, .cpus = {}}};
  CHECK(index_of(places, "1") == 1);
  CHECK(index_of(places, "GPU-6f11") == 1);
  CHECK(index_of(places, "GPU-6fd") == 0);
  CHECK(index_of(places, "GPU-6f") == -1);  // Two begin so.
  CHECK(index_of(places, "MIG-2") == 2);
  CHECK(index_of(places, "MIG-GPU-8888/3/0") == 2);
  CHECK(index_of(places, "MIG-3") == -1);
  CHECK(index_of(places, "MIG-") == -1);
  for (const auto* name : {"3", "-1", "1x", "", "gpu-6fd0", "GPU-9", "NoDevFiles"})
    CHECK(index_of(places, name) == -1);
}

TEST_CASE("a GPU whose UUID is not known has no UUID's name") {
  const std::vector<GpuPlace> places{{.index = 0, .uuid = "", .slices = {}, .cpus = {}}};
  CHECK(index_of(places, "GPU-a") == -1);
  CHECK(index_of(places, "0") == 0);
}
