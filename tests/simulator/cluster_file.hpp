// SPDX-License-Identifier: Apache-2.0
// A cluster as a YAML file describes it: hosts and their ranks, links, and failures at times.
// bench/README.md has the format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "tests/simulator/network.hpp"

namespace horo::runtime::sim {

/// Hosts that are alike.
struct HostGroup {
  int count = 1;
  int ranks = 1;  ///< On each host.
  HostLink link;
};

struct HostFailure {
  enum class How { dies, is_cut, stops };

  Duration at{};  ///< After the sums.
  int host = 0;
  How how = How::dies;
};

std::string_view name(HostFailure::How how);

struct Cluster {
  std::vector<HostGroup> groups;
  HostLink inside{.latency = std::chrono::microseconds(1), .bytes_per_second = 10e9};
  Duration jitter{};
  int radix = 16;
  Duration heartbeat_timeout = std::chrono::seconds(5);
  int tensors = 161;
  std::vector<std::uint64_t> sums = {4, 1U << 20U};  ///< Bytes.
  std::vector<HostFailure> failures;
  std::uint64_t seed = 1;

  int hosts() const;
  int ranks() const;
};

/// `name` is for messages. Fails: invalid_argument, with the line, the key, its value, and what is
/// allowed.
Result<Cluster> parse_cluster(std::string_view text, const std::string& name);

/// Fails: as parse_cluster(), and as reading the file.
Result<Cluster> read_cluster(const std::string& path);

}  // namespace horo::runtime::sim
