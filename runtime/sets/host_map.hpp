// SPDX-License-Identifier: Apache-2.0
// Which rank of a job runs on which host.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "runtime/bootstrap/meeting/meeting.hpp"

namespace horo::runtime {

/// Thread: immutable.
class HostMap {
 public:
  explicit HostMap(const bootstrap::Meeting& meeting)
      : hosts_(meeting.hosts),
        own_(static_cast<std::size_t>(meeting.identity.host_index)),
        host_of_(static_cast<std::size_t>(meeting.identity.size), -1) {
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      for (const auto rank : hosts_[h].ranks) host_of_.at(rank.index()) = static_cast<int>(h);
    }
  }

  std::size_t hosts() const { return hosts_.size(); }

  std::size_t ranks() const { return host_of_.size(); }

  /// This rank's host.
  const bootstrap::JobHost& own() const { return hosts_[own_]; }

  int host_of(Rank rank) const { return host_of_.at(rank.index()); }

  /// These ranks run on several hosts.
  bool spans(std::span<const Rank> ranks) const {
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](Rank rank) { return host_of(rank) != host_of(ranks.front()); });
  }

 private:
  const std::vector<bootstrap::JobHost> hosts_;
  const std::size_t own_;
  std::vector<int> host_of_;  ///< By rank.
};

}  // namespace horo::runtime
