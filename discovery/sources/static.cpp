// SPDX-License-Identifier: Apache-2.0
#include "discovery/sources/static.hpp"

#include "discovery/host_list.hpp"

namespace horo::discovery {

Result<Listing> StaticSource::list(WaitLimit) {
  auto hosts = parse_list(text_, default_slots_);
  if (!hosts) return Failure(std::move(hosts).error().context(name()));
  return Listing{.hosts = std::move(*hosts), .from = {}};
}

}  // namespace horo::discovery
