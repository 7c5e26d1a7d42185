// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "discovery/host.hpp"

namespace horo::discovery {

/// A variable's value, as getenv; null: not set.
using Lookup = std::function<const char*(const char*)>;

/// A source's answer.
struct Listing {
  HostSet hosts;     ///< Never empty.
  std::string from;  ///< What decided, for people: "slots from SLURM_TASKS_PER_NODE"; may be empty.
};

/// One way to learn who can run ranks. Reads, never remembers. Thread: owner.
class HostSource {
 public:
  virtual ~HostSource() = default;
  /// For messages: "-H", "hostfile 'h'", "Slurm job 42".
  virtual std::string_view name() const = 0;
  /// Blocks: until `deadline`. Fails: invalid_argument, not_found, unavailable, io, timed_out; the
  /// message begins with name().
  virtual Result<Listing> list(Deadline deadline) = 0;
};

}  // namespace horo::discovery
