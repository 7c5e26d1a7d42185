// SPDX-License-Identifier: Apache-2.0
// The events that change the membership of an elastic job. A worker is named by its number in the
// job, a host by its index in MembershipState::hosts, which never changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "discovery/host.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// All hosts that can be used now, in the user's order. The list replaces the one before. A job
/// with fixed hosts gets one such event.
struct HostsOffered {
  discovery::HostSet hosts;
};

/// The hosts could not be listed. The first attempt ends the job; later ones keep the list.
struct OfferFailed {
  Error error;
};

struct WorkerStarted {
  int worker = 0;
};

/// The agent could not start the process: not_found and permission_denied will fail again.
struct WorkerNotStarted {
  int worker = 0;
  Error error;
};

/// A worker asks for its place in the next generation. The answer is a member of
/// MembershipOrders::formed, or one of `removed` and `refused`. A later call of the same worker
/// replaces an earlier one that has no answer yet and keeps its place in the queue; the answer then
/// has the later attempt.
struct WorkerCalled {
  int worker = 0;
  std::uint32_t attempt = 1;
  std::uint64_t generation = 0;  ///< The last one that it entered; 0: none.
};

/// `exit.rank` is the worker's number. Code 0 of a member that has left its generation says that
/// the program is ending; with `exit.undetached` it is a failure.
struct WorkerEnded {
  RankExit exit;
};

/// The agent of the host ended unasked, could not be started, or was silent for too long. Its
/// workers are gone, and no further event names them.
struct AgentLost {
  std::size_t host = 0;
  Error error;
};

/// The agent has ended after the order `close` or `stop`.
struct AgentClosed {
  std::size_t host = 0;
};

/// The host is about to go: its agent got a signal (of a batch system, say), or the user shrinks
/// the job. Its workers may stay for `within`.
struct HostLeaving {
  std::size_t host = 0;
  int signal = 0;  ///< 0: the user asked for it.
  Duration within{};
};

/// The user wants a host to be used again that was put aside or has left.
struct HostReturned {
  std::size_t host = 0;
};

/// A signal to the launcher.
struct LauncherSignalled {
  int number = 0;
};

/// The launcher is about to be stopped by a terminal's Ctrl-Z; LauncherResumed follows when it goes
/// on. The time between the two counts for no deadline.
struct LauncherSuspended {};

struct LauncherResumed {};

/// The job's own time limit passed.
struct JobTimedOut {};

/// The time MembershipOrders::wake_at has come. An early or needless one does no harm.
struct Ticked {};

using MembershipEvent =
    std::variant<HostsOffered, OfferFailed, WorkerStarted, WorkerNotStarted, WorkerCalled,
                 WorkerEnded, AgentLost, AgentClosed, HostLeaving, HostReturned, LauncherSignalled,
                 LauncherSuspended, LauncherResumed, JobTimedOut, Ticked>;

}  // namespace horo::launcher
