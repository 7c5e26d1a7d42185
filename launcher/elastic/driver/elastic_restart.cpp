// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/elastic_restart.hpp"

#include <algorithm>
#include <sys/wait.h>

#include "launcher/job/generation.hpp"

namespace horo::launcher {

namespace {

/// The failure in the terms of an ordinary job.
FirstFailure failure_of(const JobEnd& end) {
  switch (end.cause) {
    case EndCause::worker:
      return {.kind = WIFSIGNALED(end.wait_status) ? FailureKind::signalled : FailureKind::exited,
              .exit = {.wait_status = end.wait_status}};
    case EndCause::unstartable:
      return {.kind = FailureKind::not_spawned, .error = {Errc::not_found, end.failure}};
    case EndCause::time_limit:
      return {.kind = FailureKind::time_limit};
    case EndCause::none:
    case EndCause::shortage:
      break;
  }
  return {.kind = FailureKind::host_lost, .error = {Errc::peer_lost, end.failure}};
}

}  // namespace

RestartDecision decide_restart(const RestartPolicy& policy, const MembershipState& state,
                               const JobEnd& end, const std::vector<TimePoint>& earlier,
                               TimePoint now) {
  if (end.cause == EndCause::none || state.verdict.signal != 0) return {};
  const auto& hosts = state.hosts.all();
  const bool processes_left = std::any_of(
      hosts.begin(), hosts.end(), [](const auto& host) { return host.agent != AgentPhase::none; });
  return decide_restart(policy, failure_of(end), processes_left, earlier, now);
}

}  // namespace horo::launcher
