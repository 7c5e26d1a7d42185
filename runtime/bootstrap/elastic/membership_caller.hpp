// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/deadline.hpp"
#include "base/elastic/membership_messages.hpp"
#include "base/result.hpp"
#include "runtime/bootstrap/meeting/meeting.hpp"

namespace horo::runtime::bootstrap {

/// Asks the launcher, through the agent of this host, for this worker's place in the next
/// generation of an elastic job. Owns the number of calls that this process has made. Thread:
/// owner.
class MembershipCaller {
 public:
  struct Place {
    elastic::MembershipAnswer answer;  ///< Its kind is member.
    kv::Client store;                  ///< The connection over which it came.
  };

  /// `store`: the one of this host's agent. `generation`: the last one of which this process was a
  /// member; 0: none. Blocks: until the launcher has formed a generation. Fails: removed and
  /// unavailable (with the launcher's reason; unavailable also if the launcher is gone), timed_out,
  /// protocol, and as kv::Client.
  Result<Place> call(const JobStore& store, std::uint32_t worker, std::uint64_t generation,
                     const Deadline& deadline);

 private:
  std::uint32_t attempt_ = 0;
};

/// Tells the launcher, for its reports, that the training goes on. Blocks: until the store has the
/// word. Fails: timed_out, unavailable (the launcher is gone), and as kv::Client.
Status tell_resumed(const JobStore& store, const elastic::TrainingResumed& resumed,
                    const Deadline& deadline);

}  // namespace horo::runtime::bootstrap
