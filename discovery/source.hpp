// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "discovery/host.hpp"

namespace horo::discovery {

/// Returns the value of a variable like getenv; null if it is not set.
using Lookup = std::function<const char*(const char*)>;

/// The end of a message about an allocation that cannot be read.
inline constexpr std::string_view kNameTheHosts = "give the hosts with -H or --hostfile";

/// Whether a source may name no host. An elastic job waits for hosts then.
enum class NoHosts : std::uint8_t { refused, allowed };

/// The answer of a source.
struct Listing {
  HostSet hosts;     ///< Empty only if the source was told that it may be.
  std::string from;  ///< The origin of the slots, for people: "slots from SLURM_TASKS_PER_NODE";
                     ///< may be empty.
};

/// One way to learn the hosts of a job. It reads anew at each call and keeps no state. Thread:
/// owner.
class HostSource {
 public:
  virtual ~HostSource() = default;
  /// Its name in messages: "-H", "hostfile 'h'", "Slurm job 42".
  virtual std::string_view name() const = 0;
  /// Blocks: until `limit`. Fails: invalid_argument, not_found, unavailable, io, timed_out,
  /// cancelled; the message begins with name().
  virtual Result<Listing> list(WaitLimit limit) = 0;
};

}  // namespace horo::discovery
