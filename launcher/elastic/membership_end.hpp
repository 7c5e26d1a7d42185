// SPDX-License-Identifier: Apache-2.0
// Steps of the membership machine that lead to the end of the job. For membership.cpp and the other
// steps only.
#pragma once

#include <string>

#include "base/board_header.hpp"
#include "launcher/elastic/membership.hpp"

namespace horo::launcher {

struct JobFailure {
  std::string text;
  int exit_code = 1;
  std::string host{};  ///< The cause's; empty: none is to blame.
  LossCause cause = LossCause::aborted;
  /// A worker that failed in this generation decides instead, but not after the time limit.
  EndCause end_cause = EndCause::shortage;
};

/// The job fails, unless it is being stopped already: all agents are stopped.
void fail_job(MembershipState& state, const JobFailure& failure, TimePoint now);

void stop_by_signal(MembershipState& state, int number, const std::string& host, TimePoint now);

/// A member ended with code 0: no further generation is formed, and the others have time to end.
void begin_ending(MembershipState& state, const ElasticWorker& first, TimePoint now);

/// The first worker that failed while the program was ending decides the exit code.
void note_late_failure(MembershipState& state, const JobEnd& end);

/// Ends the job if no further generation may be formed, whoever calls.
void judge(MembershipState& state, TimePoint now);

/// Fails a job that has too few workers, when nothing can come or the time is over.
void judge_shortage(MembershipState& state, TimePoint now);

/// Closes the agents of hosts that have no worker and get none.
void close_hosts(MembershipState& state);

/// In the phases ending and stopping: acts on their deadlines, and finishes the job.
void settle_end(MembershipState& state, TimePoint now);

}  // namespace horo::launcher
