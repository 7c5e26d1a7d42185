// SPDX-License-Identifier: Apache-2.0
// Reads the description of a cluster, and of a training on it, from a YAML file. bench/README.md
// has the format.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "runtime/simulator/cluster/cluster.hpp"

namespace horo::apps {

/// `name` is for messages. Fails: invalid_argument, with the line, the key, its value, and what is
/// allowed.
Result<runtime::sim::Cluster> parse_cluster(std::string_view text, const std::string& name);

/// Fails: as parse_cluster(), and as reading the file.
Result<runtime::sim::Cluster> read_cluster(const std::string& path);

}  // namespace horo::apps
