// SPDX-License-Identifier: Apache-2.0
#include "discovery/sources/static.hpp"

#include "discovery/host_list.hpp"

namespace horo::discovery {

Result<HostSet> StaticSource::list(Deadline) {
  return parse_list(text_, default_slots_).context(name());
}

}  // namespace horo::discovery
