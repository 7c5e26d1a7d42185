// SPDX-License-Identifier: Apache-2.0
// IBM's Cluster System Management, which allocates the hosts of an LSF job on some machines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.hpp"
#include "base/result.hpp"

namespace horo::discovery {

inline constexpr const char* kCsmFolder = "/opt/ibm/csm/bin";

/// The compute nodes of an allocation. The first speaks for all about what they have.
struct CsmNodes {
  std::vector<std::string> nodes;  ///< By name.
  int cores = 0;                   ///< That the job may use, on each; 0: CSM does not say.
  int gpus = 0;                    ///< On each, at least 1.
};

/// Asks csm_allocation_query and csm_node_attributes_query, which are in `folder`.
/// Blocks: for both, until `deadline`. Fails: as output_of; unavailable (an answer without nodes or
/// GPUs), invalid_argument.
Result<CsmNodes> ask_csm(const std::string& folder, const std::string& allocation,
                         Deadline deadline);

/// The words of `key` in what CSM's queries print, YAML of keys with a value or a list of them:
/// `key: a`, `key: [a, b]`, `key:` with lines `- a`. Empty: no such key. Pure.
std::vector<std::string> csm_values(std::string_view text, std::string_view key);

}  // namespace horo::discovery
