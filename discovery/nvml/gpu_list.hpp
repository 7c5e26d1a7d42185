// SPDX-License-Identifier: Apache-2.0
// The GPUs of this machine, by NVIDIA's management library. It sees all of them, whatever
// CUDA_VISIBLE_DEVICES is, and does not start CUDA.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace horo::discovery {

struct GpuLinks {
  std::string peer;  ///< "GPU 3", or the PCI address of a switch.
  int links = 0;
};

struct Gpu {
  int index = 0;  ///< In the order of PCI addresses.
  std::string name;
  std::string uuid;
  std::string pci;
  std::uint64_t memory = 0;  ///< Bytes.
  std::uint64_t used = 0;
  int busy = -1;                    ///< Per cent of the last moment; -1: unknown.
  int celsius = -1;                 ///< -1: unknown.
  std::vector<int> processes;       ///< Processes that compute on it, where the driver tells.
  bool sliced = false;              ///< It is in MIG mode.
  std::vector<std::string> slices;  ///< UUIDs of its MIG devices.
  std::vector<GpuLinks> links;      ///< By NVLink.
  std::uint64_t uncorrected = 0;    ///< Uncorrected memory errors since the driver was loaded.
  std::vector<int> cpus;            ///< The nearest hardware threads; empty: not known.
  std::string problem;              ///< Why it cannot be used; empty: it can.
};

struct GpuList {
  std::string driver;  ///< "580.65.06"
  int cuda = 0;        ///< The newest CUDA that the driver runs: 13000 is 13.0.
  std::vector<Gpu> gpus;
};

/// Blocks: while the driver starts, and for each GPU that is lost. Fails: unavailable (no driver;
/// says why).
Result<GpuList> list_gpus();

/// "13.0" for 13000.
std::string cuda_version_text(int version);

/// "GPU 2 (GPU-6fd0…) cannot be used: it has fallen off the bus (NVML 15)".
std::string describe_problem(const Gpu& gpu);

}  // namespace horo::discovery
