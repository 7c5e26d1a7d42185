// SPDX-License-Identifier: Apache-2.0
// Steps of the membership machine by which workers leave the job: they fail, are ended, are told to
// go, or lose their host. For membership.cpp and the other steps only.
#pragma once

#include <string>

#include "launcher/elastic/membership.hpp"

namespace horo::launcher {

/// "worker 3 on host b".
std::string named(const MembershipState& state, const ElasticWorker& worker);

/// Answers the worker's call: it is no longer part of the job and should end with code 0.
void remove_worker(MembershipState& state, ElasticWorker& worker, std::string why, TimePoint now);

/// Answers the worker's call with an error.
void refuse(MembershipState& state, const ElasticWorker& worker, std::string why);

/// Orders the end of a worker. A call that waits is answered first.
void end_worker(MembershipState& state, ElasticWorker& worker, std::string why);

/// The worker is no longer a member. The generation is over, and the other members have to call.
void lose(MembershipState& state, ElasticWorker& worker, std::string why, bool failed,
          TimePoint now);

/// A member of the running generation calls. One that gives up each meeting first cannot join, and
/// is ended after the rejoin timeout: without it, the others can meet.
void note_first_call(MembershipState& state, ElasticWorker& worker, TimePoint now);

/// A member called, or was lost: the running generation is over.
void begin_regrouping(MembershipState& state, TimePoint now);

/// The worker failed by its own fault: its slot's failures decide about the host.
struct WorkerFault {
  std::string why;
  int exit_code = 1;      ///< The job's, if this failure ends it.
  bool for_good = false;  ///< A further attempt on this host would fail as well.
  EndCause cause = EndCause::shortage;
  int wait_status = 0;  ///< As in JobEnd.
};

void blame(MembershipState& state, ElasticWorker& worker, const WorkerFault& fault, TimePoint now);

void put_aside(MembershipState& state, std::size_t host, const std::string& why, TimePoint now);

/// Asks the newest workers of each host that has more of them than room to leave, and no others.
void choose_leavers(MembershipState& state, TimePoint now);

/// Ends or turns away workers outside the generation that should leave or are too many.
void dismiss_newcomers(MembershipState& state, TimePoint now);

/// Acts on the deadlines of workers that have passed.
void expire_workers(MembershipState& state, TimePoint now);

/// Acts only on those of removed workers, which have to end in any case.
void expire_removed(MembershipState& state, TimePoint now);

/// No generation may follow the present one.
bool no_more_resets(const MembershipState& state);

}  // namespace horo::launcher
