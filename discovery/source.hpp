// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "discovery/host.hpp"

namespace horo::discovery {

/// One way to learn who can run ranks. Reads, never remembers. Thread: owner.
class HostSource {
 public:
  virtual ~HostSource() = default;
  /// For messages: "-H", "hostfile 'h'".
  virtual std::string_view name() const = 0;
  /// Blocks: until `deadline`. Fails: invalid_argument, not_found, io, timed_out.
  virtual Result<HostSet> list(Deadline deadline) = 0;
};

}  // namespace horo::discovery
