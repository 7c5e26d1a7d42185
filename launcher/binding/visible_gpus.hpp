// SPDX-License-Identifier: Apache-2.0
// The GPUs that the ranks of this host may use: their names for the variable that selects GPUs, and
// where they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace horo::launcher {

/// The variables that say which GPUs a process may use, as they are now. The numbers in HIP's, and
/// in CUDA's under HIP, count in the list of ROCm's own variable.
struct GpuVariables {
  std::optional<std::string> cuda{};  ///< CUDA_VISIBLE_DEVICES
  std::optional<std::string> hip{};   ///< HIP_VISIBLE_DEVICES
  std::optional<std::string> rocr{};  ///< ROCR_VISIBLE_DEVICES

  /// `lookup(name)`: the value of a variable, or null.
  template <typename Lookup>
  static GpuVariables of(const Lookup& lookup) {
    const auto value = [&lookup](const char* name) -> std::optional<std::string> {
      const char* const text = lookup(name);
      if (text == nullptr) return std::nullopt;
      return text;
    };
    return {.cuda = value("CUDA_VISIBLE_DEVICES"),
            .hip = value("HIP_VISIBLE_DEVICES"),
            .rocr = value("ROCR_VISIBLE_DEVICES")};
  }
};

/// A GPU under the name that the variable uses.
struct VisibleGpu {
  std::string id;
  std::vector<int> cpus;  ///< The nearest hardware threads; empty: not looked up.
};

struct VisibleGpus {
  std::vector<VisibleGpu> gpus;
  const char* variable = "CUDA_VISIBLE_DEVICES";  ///< Or HIP_VISIBLE_DEVICES.
  bool by_bus = false;            ///< The numbers are positions on the PCI bus, of NVIDIA's GPUs.
  std::vector<std::string> rocr;  ///< The list in which the numbers count; empty: that of all GPUs.
};

/// Where a name of CUDA's or HIP's variable is to be looked for beyond files.
enum class AskDriver : bool { no, yes };

/// The GPUs that the variables name; without them, all of this host, by files below `root`. Blocks:
/// while NVIDIA's driver starts, if it may be asked and there are no files of it.
VisibleGpus visible_gpus(const GpuVariables& variables, AskDriver ask,
                         const std::string& root = "");

/// Index of a local rank's GPU among `gpus` (at least 1): one of its own if there are enough, else
/// one that it shares with neighbouring ranks. Pure.
std::size_t gpu_of(int local_rank, int ranks, std::size_t gpus);

/// Fills in where those GPUs are that `ranks` ranks get, by files below `root`. Blocks: while
/// NVIDIA's driver starts, where files do not tell. Fails: not_found (no such GPU), unsupported
/// (nobody knows where it is).
Status locate(VisibleGpus& visible, int ranks, const std::string& root = "");

}  // namespace horo::launcher
