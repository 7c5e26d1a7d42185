// SPDX-License-Identifier: Apache-2.0
// IBM's Cluster System Management, which allocates the hosts of LSF jobs on some machines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.hpp"
#include "base/result.hpp"

namespace horo::discovery {

inline constexpr const char* kCsmFolder = "/opt/ibm/csm/bin";

/// The compute nodes of an allocation. The numbers come from the first node and hold for all.
struct CsmNodes {
  std::vector<std::string> nodes;  ///< Sorted by name.
  int cores = 0;  ///< Cores that the job may use on each node; 0 if CSM does not say.
  int gpus = 0;   ///< GPUs of each node, at least 1.
};

/// Runs csm_allocation_query and csm_node_attributes_query in `folder`. Blocks: for both, until
/// `limit`. Fails: as output_of; unavailable (an answer without nodes or GPUs),
/// invalid_argument.
Result<CsmNodes> ask_csm(const std::string& folder, const std::string& allocation, WaitLimit limit);

/// The values of `key` in the output of CSM's queries. The output is YAML with a value or a list
/// for each key: `key: a`, `key: [a, b]`, `key:` with lines `- a`. Empty if the key is missing.
/// Pure.
std::vector<std::string> csm_values(std::string_view text, std::string_view key);

}  // namespace horo::discovery
