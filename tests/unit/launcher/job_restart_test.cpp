// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include <catch2/catch.hpp>

#include "base/exit_code.hpp"
#include "launcher/job/job_state.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

constexpr TimePoint kNow{1000s};

Generation generation(std::vector<discovery::Host> hosts, int np,
                      std::optional<std::size_t> this_machine = {}) {
  return make_generation(Epoch{1}, place(discovery::HostSet(hosts), {.np = np}).value(),
                         this_machine);
}

/// A job on hosts a and b, with one rank each, which has lost host b by `event`; then host a has
/// finished.
JobState ended_by(const JobEvent& event, const char* most = "3", int notice = 0,
                  std::optional<std::size_t> this_machine = {}) {
  auto state = initial_state(generation({{"a", 1}, {"b", 1}}, 2, this_machine), notice,
                             RestartPolicy::parse(most, "").value());
  for (const int rank : {0, 1}) state = next(std::move(state), RankStarted{Rank{rank}});
  state = next(std::move(state), event);
  return next(std::move(state), HostFinished{.host = 0, .survivors = 0, .now = kNow});
}

const JobEvent kLostHost = HostLost{1, {Errc::peer_lost, "silent"}, kNow};

/// The same, after the pause: it is time to plan the next generation.
JobState planning() {
  return next(ended_by(kLostHost), PauseOver{kNow});
}

}  // namespace

TEST_CASE("a lost host leads to another generation that avoids it, and the fates begin anew") {
  auto state = ended_by(kLostHost);
  CHECK(state.phase == Phase::restarting);
  CHECK(state.orders.end_generation);
  CHECK(!state.orders.finish);
  CHECK(state.orders.pause == Duration::zero());
  CHECK(state.restart.avoided == std::vector<std::string>{"b"});
  state = next(std::move(state), PauseOver{kNow});
  CHECK(state.orders == Orders{.plan = true});
  state =
      next(std::move(state), GenerationPlanned{generation({{"a", 2}}, 2).placement, std::nullopt});
  CHECK(state.phase == Phase::starting);
  CHECK(state.orders == Orders{.begin_generation = true});
  CHECK(state.generation.epoch == Epoch{2});
  CHECK(state.generation.waiting == 2);
  CHECK(!state.generation.first_failure);
}

TEST_CASE("this machine is never avoided") {
  CHECK(ended_by(kLostHost, "3", 0, 1).restart.avoided.empty());
}

TEST_CASE("a job without restarts finishes when its only generation has ended") {
  const auto state = ended_by(kLostHost, "0");
  CHECK(state.phase == Phase::finished);
  CHECK(state.orders.end_generation);
  CHECK(state.orders.finish);
  CHECK(exit_code_of(state) == exit_code::kHostLost);
}

TEST_CASE("too few hosts: first the avoided ones count again, after ten minutes the job gives up") {
  auto state = next(planning(), PlanFailed{{Errc::invalid_argument, "1 slot"}, kNow});
  CHECK(state.orders.all_hosts_again);
  CHECK(state.orders.pause == kHostsPause);
  CHECK(state.restart.avoided.empty());
  state = next(std::move(state), PauseOver{kNow + 5s});
  state = next(std::move(state), PlanFailed{{Errc::invalid_argument, "1 slot"}, kNow + 6s});
  CHECK(!state.orders.all_hosts_again);
  state = next(std::move(state),
               PlanFailed{{Errc::invalid_argument, "1 slot"}, kNow + kHostsTimeout - 1s});
  CHECK(state.orders.pause == 1s);
  state =
      next(std::move(state), PlanFailed{{Errc::invalid_argument, "1 slot"}, kNow + kHostsTimeout});
  CHECK(state.orders == Orders{.finish = true});
  CHECK(state.restart.given_up->message == "given up waiting for hosts: 1 slot");
  CHECK(exit_code_of(state) == exit_code::kHostLost);
}

TEST_CASE("the job's time limit ends the pause and the search for hosts, with the limit's code") {
  for (auto state : {ended_by(kLostHost), planning()}) {
    state = next(std::move(state), TimeLimitPassed{});
    CHECK(state.phase == Phase::finished);
    CHECK(state.orders == Orders{.finish = true});
    CHECK(state.restart.given_up->message ==
          "not restarted: --timeout passed while the job waited for its next attempt");
    CHECK(exit_code_of(state) == exit_code::kStartTimeout);
  }
}

TEST_CASE("a generation that the launcher cannot start ends the job with the last failure's code") {
  const auto state = next(planning(), RestartFailed{{Errc::io, "no descriptors"}});
  CHECK(state.phase == Phase::finished);
  CHECK(state.restart.given_up->message == "the job could not be restarted: no descriptors");
  CHECK(exit_code_of(state) == exit_code::kHostLost);
}

TEST_CASE("between two generations a signal ends the job, unless it is meant for the ranks") {
  auto state = next(ended_by(kLostHost), SignalReceived{SIGUSR1});
  CHECK(state.phase == Phase::restarting);
  state = next(std::move(state), SignalReceived{SIGPIPE});
  CHECK(state.phase == Phase::restarting);
  state = next(std::move(state), SignalReceived{SIGTERM});
  CHECK(state.orders == Orders{.finish = true});
  CHECK(exit_code_of(state) == exit_code::kSignalBase + SIGTERM);
  state = next(ended_by(kLostHost, "3", SIGUSR1), SignalReceived{SIGUSR1});
  CHECK(state.orders.finish);
  CHECK(exit_code_of(state) == exit_code::kQueueAgain);
}

TEST_CASE("events of the old generation change nothing between two generations") {
  auto state = ended_by(kLostHost);
  state = next(std::move(state), RankEnded{{.rank = Rank{0}, .wait_status = 1 << 8}});
  state = next(std::move(state), HostLost{0, {Errc::peer_lost, "late"}, kNow});
  CHECK(state.orders == Orders{});
  CHECK(state.phase == Phase::restarting);
  CHECK(state.restart.avoided == std::vector<std::string>{"b"});
}

TEST_CASE("the pause before a restart grows with their number") {
  auto state = ended_by(kLostHost);
  state = next(std::move(state), PauseOver{kNow});
  state =
      next(std::move(state), GenerationPlanned{generation({{"a", 2}}, 2).placement, std::nullopt});
  state = next(std::move(state), HostLost{0, {Errc::peer_lost, "silent"}, kNow});
  CHECK(state.phase == Phase::restarting);
  CHECK(state.orders.pause == restart_pause(1));
  CHECK(state.restart.times.size() == 2);
}
