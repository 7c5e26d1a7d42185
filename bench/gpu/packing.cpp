// SPDX-License-Identifier: Apache-2.0
// Packing and unpacking of many tensors against one device copy of as many bytes, in turns.
#include <fstream>
#include <sstream>

#include "bench/gpu/device_timing.hpp"

namespace horo::bench {

namespace {

using runtime::DeviceSpan;

constexpr int kRounds = 15;
constexpr int kLaunches = 50;

void measure(const Bench& bench, const std::string& name,
             const std::vector<std::uint64_t>& counts) {
  std::uint64_t bytes = 0;
  for (const auto count : counts) bytes += count * sizeof(float);
  std::vector<DeviceSpan> tensors;
  for (const auto count : counts)
    tensors.push_back({must(bench.device->allocate(count * sizeof(float))), count});
  void* const buffer = must(bench.device->allocate(bytes));
  void* const other = must(bench.device->allocate(bytes));
  auto& kernels = bench.shared.kernels();
  std::vector<double> pack;
  std::vector<double> unpack;
  std::vector<double> pack_ratio;
  std::vector<double> unpack_ratio;
  for (int round = 0; round < kRounds + 1; ++round) {
    const double copied = bench.time(
        kLaunches, [&] { must(bench.device->copy(other, buffer, bytes, bench.stream)); });
    const double packed =
        bench.time(kLaunches, [&] { must(kernels.pack(buffer, tensors, {}, bench.stream)); });
    const double unpacked =
        bench.time(kLaunches, [&] { must(kernels.unpack(tensors, buffer, {}, bench.stream)); });
    if (round == 0) continue;  // The first one loads the kernels.
    pack.push_back(packed);
    unpack.push_back(unpacked);
    pack_ratio.push_back(copied / packed);
    unpack_ratio.push_back(copied / unpacked);
  }
  report("pack " + name, "us", Spread(pack));
  report("unpack " + name, "us", Spread(unpack));
  report("pack " + name + " against a copy", "ratio of bandwidths", Spread(pack_ratio));
  report("unpack " + name + " against a copy", "ratio of bandwidths", Spread(unpack_ratio));
  for (const auto& tensor : tensors) bench.device->free(tensor.memory);
  bench.device->free(buffer);
  bench.device->free(other);
}

}  // namespace

/// A line of the file is a name and the elements of each tensor, float32.
void measure_packing(const std::string& workloads) {
  const Bench bench;
  std::ifstream file(workloads);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::vector<std::uint64_t> counts;
    words >> name;
    for (std::uint64_t count = 0; words >> count;) counts.push_back(count);
    if (!counts.empty()) measure(bench, name, counts);
  }
}

}  // namespace horo::bench
