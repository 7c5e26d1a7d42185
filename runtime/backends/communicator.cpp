// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/communicator.hpp"

#include <algorithm>

namespace horo::runtime {

Status check(const Communicator& communicator) {
  const auto size = communicator.size();
  if (communicator.position < 0 || communicator.position >= size) {
    return fail(Errc::invalid_argument, "position {} does not exist in a set of {} ranks",
                communicator.position, size);
  }
  if (!communicator.hosts.empty() && communicator.hosts.size() != communicator.members.size()) {
    return fail(Errc::invalid_argument, "{} ranks, but hosts for {}", size,
                communicator.hosts.size());
  }
  return {};
}

bool shares_hosts(const Communicator& communicator) {
  auto hosts = communicator.hosts;
  std::sort(hosts.begin(), hosts.end());
  return std::adjacent_find(hosts.begin(), hosts.end()) != hosts.end();
}

}  // namespace horo::runtime
