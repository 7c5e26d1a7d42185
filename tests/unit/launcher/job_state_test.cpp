// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/job_state.hpp"

#include <csignal>

#include <catch2/catch.hpp>

#include "base/exit_code.hpp"

using namespace horo;
using namespace horo::launcher;

namespace {

JobState job(int np, std::vector<discovery::Host> hosts = {}) {
  if (hosts.empty()) hosts = {{"localhost", np}};
  return initial_state(
      make_generation(Epoch{1}, place(discovery::HostSet(hosts), {.np = np}).value()));
}

JobState run(JobState state, const std::vector<JobEvent>& events) {
  for (const auto& event : events) state = next(std::move(state), event);
  return state;
}

JobEvent started(int rank) {
  return RankStarted{Rank{rank}};
}

JobEvent exited(int rank, int code) {
  return RankEnded{{.rank = Rank{rank}, .wait_status = code << 8}};
}

JobEvent left(int rank) {
  return RankEnded{{.rank = Rank{rank}, .attached = true, .undetached = true}};
}

JobEvent killed(int rank, int signal) {
  return RankEnded{{.rank = Rank{rank}, .wait_status = signal}};
}

/// The rank exits because the end of rank `of` failed its operations.
JobEvent heard(int rank, int code, int of) {
  return RankEnded{{.rank = Rank{rank}, .wait_status = code << 8, .heard = Rank{of}}};
}

JobEvent done(std::size_t host = 0, int survivors = 0) {
  return HostFinished{host, survivors};
}

JobEvent lost(std::size_t host = 0) {
  return HostLost{host, {Errc::unavailable, "the agent ended"}};
}

JobEvent not_spawned(int rank, Errc code) {
  return RankNotSpawned{Rank{rank}, {code, "no"}};
}

const JobState& check(const JobState& state, Phase phase, int code) {
  CHECK(static_cast<int>(state.phase) == static_cast<int>(phase));
  CHECK(exit_code_of(state) == code);
  return state;
}

const Orders kNothing{};

/// Two ranks that run, and SIGUSR1 as the batch system's notice.
JobState noticed() {
  auto state = initial_state(
      make_generation(Epoch{1}, place(discovery::HostSet({{"localhost", 2}}), {.np = 2}).value()),
      SIGUSR1);
  return run(std::move(state), {started(0), started(1), SignalReceived{SIGUSR1}});
}

}  // namespace

TEST_CASE(
    "a job runs when all ranks have started, and ends well when all have ended and are gone") {
  auto state = job(2);
  state = next(state, started(0));
  CHECK(state.phase == Phase::starting);
  CHECK(state.orders == kNothing);
  state = next(state, started(1));
  CHECK(state.phase == Phase::running);
  CHECK(state.orders == Orders{.all_started = true});
  state = run(state, {exited(0, 0), exited(1, 0)});
  check(state, Phase::running, 0);
  CHECK(state.orders == Orders{.dismiss = true});
  CHECK(state.generation.all_succeeded());
  state = next(state, done());
  check(state, Phase::finished, 0);
  CHECK(state.orders == Orders{.end_generation = true, .finish = true});
}

TEST_CASE("a rank that ends well lets the others go on") {
  const auto state = run(job(2), {started(0), started(1), exited(0, 0)});
  check(state, Phase::running, 0);
  CHECK(state.orders == kNothing);
}

TEST_CASE("the first rank that fails stops the others and decides the exit code") {
  auto state = run(job(3), {started(0), started(1), started(2), exited(1, 3)});
  check(state, Phase::failing, 3);
  CHECK(state.orders ==
        Orders{.stop = Poison{Rank{1}, LossCause::exited, 3}, .stop_host = "localhost"});
  state = next(state, exited(0, 7));
  CHECK(state.orders == kNothing);
  state = run(state, {killed(2, SIGTERM), done()});
  check(state, Phase::finished, 3);
  CHECK(state.generation.first_failure->rank == Rank{1});
  CHECK(state.generation.fates[0].after_failure);
  CHECK(!state.generation.fates[1].after_failure);
}

TEST_CASE(
    "a rank whose end caused others to fail is the first failure, even if its exit arrives later") {
  auto state = run(job(3), {started(0), started(1), started(2), heard(0, 20, 1)});
  check(state, Phase::failing, 20);
  CHECK(state.orders.stop == Poison{Rank{1}, LossCause::vanished, 0});
  state = next(state, heard(2, 20, 1));
  CHECK(state.generation.first_failure->rank == Rank{0});
  state = next(state, killed(1, SIGKILL));
  check(state, Phase::failing, 137);
  CHECK(!state.orders.stop);
  CHECK(state.generation.first_failure->rank == Rank{1});
  CHECK_FALSE(state.generation.fates[1].after_failure);
  CHECK(state.generation.fates[0].after_failure);
  check(next(state, done()), Phase::finished, 137);
}

TEST_CASE("in a chain of consequences the first cause is the first failure") {
  for (const bool late : {false, true}) {
    auto state = run(job(3), {heard(0, 20, 1)});
    state = late ? run(state, {heard(1, 21, 2), killed(2, SIGKILL)})
                 : run(state, {killed(2, SIGKILL), heard(1, 21, 2)});
    check(state, Phase::failing, 137);
    CHECK(state.generation.first_failure->rank == Rank{2});
  }
}

TEST_CASE("of two ranks that blame each other, the one reported first stays the first failure") {
  const auto state =
      run(job(2), {started(0), started(1), heard(0, 20, 1), heard(1, 21, 0), done()});
  check(state, Phase::finished, 20);
  CHECK(state.generation.first_failure->rank == Rank{0});
}

TEST_CASE(
    "a blamed rank that ended well, or is not part of the job, does not become the first failure") {
  check(run(job(2), {heard(0, 20, 1), exited(1, 0), done()}), Phase::finished, 20);
  check(run(job(2), {heard(0, 20, 7), exited(1, 3), done()}), Phase::finished, 20);
}

TEST_CASE("a rank that leaves its peers with code 0 is the first failure, with code 1") {
  auto state = run(job(3), {started(0), started(1), started(2), left(1)});
  check(state, Phase::failing, 1);
  CHECK(state.orders ==
        Orders{.stop = Poison{Rank{1}, LossCause::exited, 0}, .stop_host = "localhost"});
  state = run(state, {exited(0, 0), exited(2, 7), done()});
  check(state, Phase::finished, 1);
  CHECK(state.generation.first_failure->kind == FailureKind::left);
  CHECK(state.generation.first_failure->rank == Rank{1});
}

TEST_CASE("a rank that leaves its peers with code 0 did no harm when all end with 0") {
  auto state = run(job(2), {started(0), started(1), left(1), exited(0, 0), done()});
  check(state, Phase::finished, 0);
  CHECK(!state.generation.first_failure);
  CHECK(!state.generation.fates[0].after_failure);
  check(run(job(1), {started(0), left(0), done()}), Phase::finished, 0);
}

TEST_CASE("a rank that leaves its peers before they have started fails the job") {
  check(run(job(2), {started(0), left(0), done()}), Phase::finished, 1);
}

TEST_CASE("a rank killed by a signal gives 128 and the signal") {
  const auto state = run(job(2), {started(0), started(1), killed(0, SIGSEGV)});
  check(state, Phase::failing, 139);
  CHECK(state.orders.stop == Poison{Rank{0}, LossCause::signalled, SIGSEGV});
  CHECK(state.generation.first_failure->kind == FailureKind::signalled);
}

TEST_CASE("a rank that cannot be spawned fails the job with the shell's code") {
  const auto [code, expected] = GENERATE(table<Errc, int>({
      {Errc::not_found, exit_code::kCommandNotFound},
      {Errc::permission_denied, exit_code::kNotExecutable},
      {Errc::unavailable, exit_code::kFailure},
  }));
  auto state = run(job(2), {started(0), not_spawned(1, code)});
  check(state, Phase::failing, expected);
  CHECK(state.orders.stop.has_value());
  state = run(state, {killed(0, SIGTERM), done()});
  check(state, Phase::finished, expected);
}

TEST_CASE("a rank may fail before the others have started") {
  auto state = run(job(3), {started(0), exited(0, 9)});
  check(state, Phase::failing, 9);
  state = next(state, started(1));
  CHECK(!state.orders.all_started);
  state = run(state, {killed(1, SIGTERM), done()});
  check(state, Phase::finished, 9);
  CHECK(state.generation.fates[2].phase == RankPhase::not_started);
}

TEST_CASE("an exit without a start message counts as a start and an exit") {
  const auto state = run(job(1), {exited(0, 0), done()});
  check(state, Phase::finished, 0);
}

TEST_CASE("a signal ends the job with 128 + signal, whatever codes the ranks end with") {
  const int number = GENERATE(SIGINT, SIGTERM, SIGHUP);
  auto state = run(job(2), {started(0), started(1), SignalReceived{number}});
  check(state, Phase::stopping, 128 + number);
  CHECK(state.orders.stop ==
        Poison{Rank{-1}, LossCause::aborted, static_cast<std::uint32_t>(number)});
  state = run(state, {exited(0, 1), exited(1, 0), done()});
  check(state, Phase::finished, 128 + number);
  CHECK(!state.generation.first_failure);
}

TEST_CASE("a second signal kills at once, and so does one after a failure") {
  auto state =
      run(job(2), {started(0), started(1), SignalReceived{SIGINT}, SignalReceived{SIGINT}});
  CHECK(state.orders == Orders{.kill = true});
  check(state, Phase::stopping, 130);

  state = run(job(2), {started(0), started(1), exited(0, 4), SignalReceived{SIGTERM}});
  CHECK(state.orders == Orders{.kill = true});
  check(state, Phase::failing, 4);
}

TEST_CASE("a signal after the last rank has ended well kills what is left at once") {
  const auto state = run(job(1), {started(0), exited(0, 0), SignalReceived{SIGTERM}});
  CHECK(state.orders == Orders{.kill = true});
  check(next(state, done()), Phase::finished, 0);
}

TEST_CASE("user signals are passed on, but not to a job that is being stopped") {
  const int number = GENERATE(SIGUSR1, SIGUSR2);
  auto state = run(job(1), {started(0), SignalReceived{number}});
  CHECK(state.orders == Orders{.pass_signal = number});
  check(state, Phase::running, 0);
  state = run(state, {SignalReceived{SIGINT}, SignalReceived{number}});
  CHECK(state.orders == kNothing);
}

TEST_CASE(
    "a suspended launcher stops and continues its ranks, but not while they are being stopped") {
  auto state = run(job(2), {started(0), Suspended{}});
  CHECK(state.orders == Orders{.pass_signal = SIGSTOP});
  check(state, Phase::starting, 0);
  state = next(state, Resumed{});
  CHECK(state.orders == Orders{.pass_signal = SIGCONT});
  state = run(state, {exited(0, 4), Suspended{}});
  CHECK(state.orders == kNothing);
  CHECK(next(state, Resumed{}).orders == kNothing);
}

TEST_CASE("a start timeout fails the job, and does not apply once the job runs") {
  auto state = run(job(2), {started(0), StartTimedOut{}});
  check(state, Phase::failing, exit_code::kStartTimeout);
  CHECK(state.orders.stop == Poison{Rank{-1}, LossCause::aborted, 0});
  state = run(job(1), {started(0), StartTimedOut{}});
  check(state, Phase::running, 0);
}

TEST_CASE("the time limit stops a running job, not one whose ranks have ended well") {
  auto state = run(job(1), {started(0), TimeLimitPassed{}});
  check(state, Phase::failing, exit_code::kStartTimeout);
  state = run(job(1), {started(0), exited(0, 0), TimeLimitPassed{}, done()});
  check(state, Phase::finished, 0);
}

TEST_CASE("a lost host fails the job and takes its ranks with it") {
  auto state =
      run(job(4, {{"a", 2}, {"b", 2}}), {started(0), started(1), started(2), started(3), lost(1)});
  check(state, Phase::failing, exit_code::kHostLost);
  CHECK(state.orders.stop == Poison{Rank{-1}, LossCause::host_lost, 0});
  CHECK(state.orders.stop_host == "b");
  CHECK(state.generation.fates[2].phase == RankPhase::lost);
  CHECK(state.generation.fates[0].phase == RankPhase::running);
  state = run(state, {killed(0, SIGTERM), killed(1, SIGTERM), done(0)});
  check(state, Phase::finished, exit_code::kHostLost);
}

TEST_CASE("a lost host becomes the first failure when its ranks' ends caused the first one") {
  auto state = run(job(4, {{"a", 2}, {"b", 2}}),
                   {started(0), started(1), started(2), started(3), heard(0, 20, 2), lost(1)});
  check(state, Phase::failing, exit_code::kHostLost);
  CHECK(state.generation.first_failure->kind == FailureKind::host_lost);
  CHECK(state.generation.first_failure->host == 1);
  CHECK(state.generation.fates[0].after_failure);
}

TEST_CASE("a host that is lost while the job is being stopped only shortens the wait") {
  auto state = run(job(1), {started(0), SignalReceived{SIGINT}, lost()});
  check(state, Phase::finished, 130);
  CHECK(state.orders.finish);
}

TEST_CASE("an agent that finishes before its ranks have ended is a lost host") {
  const auto state = run(job(2), {started(0), started(1), exited(0, 0), done()});
  check(state, Phase::finished, exit_code::kHostLost);
  CHECK(state.generation.fates[1].phase == RankPhase::lost);
}

TEST_CASE("survivors of all hosts are counted") {
  const auto state =
      run(job(2, {{"a", 1}, {"b", 1}}), {exited(0, 0), exited(1, 0), done(0, 2), done(1, 1)});
  check(state, Phase::finished, 0);
  CHECK(state.generation.survivors == 3);
}

TEST_CASE("events after the end and invalid events change nothing") {
  const auto ended = run(job(1), {started(0), exited(0, 0), done()});
  for (const JobEvent& event :
       std::vector<JobEvent>{exited(0, 1), SignalReceived{SIGINT}, lost(), StartTimedOut{},
                             TimeLimitPassed{}, started(0), done()}) {
    const auto state = next(ended, event);
    check(state, Phase::finished, 0);
    CHECK(state.orders == kNothing);
  }
  const auto state = run(
      job(1), {started(5), started(-1), exited(7, 1), not_spawned(-2, Errc::io), done(3), lost(9)});
  check(state, Phase::starting, 0);
}

// Every sequence of events up to a length, over two hosts of one rank each.
TEST_CASE("in every order of events the first failure stays, and the end comes once and last") {
  const std::vector<JobEvent> events{started(0),
                                     started(1),
                                     exited(0, 0),
                                     left(0),
                                     exited(1, 0),
                                     exited(1, 5),
                                     killed(0, SIGKILL),
                                     not_spawned(1, Errc::not_found),
                                     done(0),
                                     done(1),
                                     lost(1),
                                     SignalReceived{SIGTERM},
                                     Suspended{},
                                     StartTimedOut{},
                                     TimeLimitPassed{}};

  struct Node {
    JobState state;
    int depth;
  };

  std::vector<Node> open{{job(2, {{"a", 1}, {"b", 1}}), 0}};
  int finished = 0;
  while (!open.empty()) {
    const auto node = std::move(open.back());
    open.pop_back();
    for (const auto& event : events) {
      const auto state = next(node.state, event);
      const bool was_first = node.state.generation.first_failure.has_value();
      const bool forgiven = was_first && state.phase == Phase::finished &&
                            node.state.generation.first_failure->kind == FailureKind::left &&
                            state.generation.all_succeeded();
      if (was_first && !forgiven) {
        REQUIRE(state.generation.first_failure.has_value());
        REQUIRE(state.generation.first_failure->kind == node.state.generation.first_failure->kind);
        REQUIRE(exit_code_of(state) == exit_code_of(node.state));
      }
      REQUIRE((state.orders.stop.has_value() ? !was_first && node.state.stop_signal == 0 : true));
      REQUIRE(state.orders.finish ==
              (state.phase == Phase::finished && node.state.phase != Phase::finished));
      REQUIRE(state.orders.finish == (state.generation.host_done == std::vector<bool>{true, true} &&
                                      node.state.phase != Phase::finished));
      if (state.phase == Phase::finished) {
        ++finished;
        const bool stopped = state.stop_signal != 0 || state.generation.first_failure;
        REQUIRE((exit_code_of(state) == 0) == (state.generation.all_succeeded() && !stopped));
        if (forgiven) REQUIRE_FALSE(state.generation.first_failure);
        for (const auto& fate : state.generation.fates) {
          REQUIRE(fate.phase != RankPhase::running);
          REQUIRE(fate.phase != RankPhase::waiting);
        }
      } else if (node.depth < 4) {
        open.push_back({state, node.depth + 1});
      }
    }
  }
  CHECK(finished > 1000);
}

TEST_CASE(
    "after a notice ranks may end with 0 or ask to be queued again, and the job asks for it") {
  auto state = noticed();
  CHECK(state.orders.pass_signal == SIGUSR1);
  state = run(std::move(state), {exited(0, 0), exited(1, exit_code::kQueueAgain), done()});
  check(state, Phase::finished, exit_code::kQueueAgain);
  CHECK(!state.generation.first_failure);
}

TEST_CASE("a rank may follow the notice before the launcher receives it") {
  const auto before_notice = [](const JobEvent& end) {
    auto state = initial_state(
        make_generation(Epoch{1}, place(discovery::HostSet({{"localhost", 2}}), {.np = 2}).value()),
        SIGUSR1);
    return run(std::move(state),
               {started(0), started(1), end, SignalReceived{SIGUSR1}, killed(1, SIGTERM), done()});
  };
  check(before_notice(killed(0, SIGUSR1)), Phase::finished, exit_code::kQueueAgain);
  check(before_notice(exited(0, 75)), Phase::finished, exit_code::kQueueAgain);
  check(before_notice(exited(0, 3)), Phase::finished, 3);
  check(before_notice(killed(0, SIGSEGV)), Phase::finished, 139);
}

TEST_CASE("a notice excuses only ends that follow from it") {
  check(run(noticed(), {killed(0, SIGUSR1), killed(1, SIGTERM), done()}), Phase::finished,
        exit_code::kQueueAgain);
  check(run(noticed(), {SignalReceived{SIGTERM}, killed(0, SIGTERM), killed(1, SIGKILL), done()}),
        Phase::finished, exit_code::kQueueAgain);
  check(run(noticed(), {exited(0, 3), exited(1, 0), done()}), Phase::finished, 3);
  check(run(noticed(), {killed(0, SIGSEGV), exited(1, 0), done()}), Phase::finished, 139);
  check(run(noticed(), {lost()}), Phase::finished, exit_code::kHostLost);
}

TEST_CASE("without a notice, the code for queuing again is an ordinary exit code") {
  auto state = run(job(2), {started(0), started(1), SignalReceived{SIGUSR1},
                            exited(0, exit_code::kQueueAgain), killed(1, SIGTERM), done()});
  check(state, Phase::finished, exit_code::kQueueAgain);
  CHECK(state.generation.first_failure);
  CHECK(!wants_another_run(state));
}

TEST_CASE("SIGTERM as the notice stops the ranks, and the job asks to be queued again") {
  auto state = initial_state(
      make_generation(Epoch{1}, place(discovery::HostSet({{"localhost", 1}}), {.np = 1}).value()),
      SIGTERM);
  state = run(std::move(state), {started(0), SignalReceived{SIGTERM}});
  CHECK(state.orders.stop);
  check(run(std::move(state), {killed(0, SIGTERM), done()}), Phase::finished,
        exit_code::kQueueAgain);
}

TEST_CASE("a signal to an agent stops the job with the grace period, like one to the launcher") {
  const auto running = run(job(2), {started(0), started(1)});
  auto asked = next(running, AgentSignalled{0, SIGTERM});
  CHECK(asked.orders.stop);
  CHECK(asked.interrupted);
  CHECK(asked.asked_host == 0U);
  // The same signal to other agents, and at last to the launcher, kills nothing.
  asked = next(std::move(asked), AgentSignalled{0, SIGTERM});
  CHECK(asked.orders == kNothing);
  asked = next(std::move(asked), SignalReceived{SIGTERM});
  CHECK(asked.orders == kNothing);
  CHECK(next(asked, SignalReceived{SIGTERM}).orders.kill);
  CHECK(exit_code_of(run(asked, {exited(0, 0), killed(1, SIGTERM), done()})) == 143);
  CHECK(next(next(running, AgentSignalled{0, SIGTERM}), SignalReceived{SIGINT}).orders.kill);
  CHECK(next(running, AgentSignalled{7, SIGTERM}).phase == Phase::running);
  // It does not replace an earlier failure either.
  const auto failed = run(running, {exited(0, 3), AgentSignalled{0, SIGTERM}});
  CHECK(failed.orders == kNothing);
  CHECK(exit_code_of(run(failed, {killed(1, SIGTERM), done()})) == 3);
}

TEST_CASE("an agent may be signalled after its own ranks ended well, while others run") {
  const std::vector<discovery::Host> hosts{{"node1", 1}, {"node2", 1}};
  auto state = run(job(2, hosts), {started(0), started(1), exited(1, 0)});
  CHECK(state.orders == kNothing);
  const auto asked = next(state, AgentSignalled{1, SIGTERM});
  CHECK(asked.orders.stop);
  check(run(asked, {exited(0, 0), done(0), done(1)}), Phase::finished, 143);
  // For that, agents stay until the last rank has ended.
  CHECK(next(state, exited(0, 0)).orders == Orders{.dismiss = true});
  const auto failed = next(state, exited(0, 3));
  CHECK(failed.orders.stop);
  CHECK(failed.orders.dismiss);
}

TEST_CASE("SIGTERM to an agent is the notice if --signal says so") {
  const auto running = run(
      initial_state(make_generation(
                        Epoch{1}, place(discovery::HostSet({{"localhost", 2}}), {.np = 2}).value()),
                    SIGTERM),
      {started(0), started(1)});
  const auto code_after = [&](const std::vector<JobEvent>& events) {
    return exit_code_of(run(running, events));
  };
  const AgentSignalled asked{0, SIGTERM};
  CHECK(code_after({asked, exited(0, 0), exited(1, 75), done()}) == exit_code::kQueueAgain);
  // The agent's ranks may be signalled too, and their exits may arrive first.
  CHECK(code_after({killed(0, SIGTERM), asked, exited(1, 0), done()}) == exit_code::kQueueAgain);
  CHECK(code_after({exited(0, 0), exited(1, 0), asked, done()}) == exit_code::kQueueAgain);
  CHECK(code_after({exited(0, 3), asked, exited(1, 0), done()}) == 3);
}

TEST_CASE("a reader that is gone stops a running job, but does not hurry one that is ending") {
  const auto running = run(job(2), {started(0), started(1)});
  const auto stopped = next(running, SignalReceived{SIGPIPE});
  CHECK(stopped.orders.stop);
  CHECK(stopped.interrupted);
  CHECK(exit_code_of(run(stopped, {killed(0, SIGTERM), killed(1, SIGTERM), done()})) == 141);
  const auto failing = run(running, {exited(0, 3), SignalReceived{SIGPIPE}});
  CHECK(!failing.orders.kill);
  CHECK(!failing.interrupted);
  const auto over = run(running, {exited(0, 0), exited(1, 0), SignalReceived{SIGPIPE}});
  CHECK(exit_code_of(run(over, {done()})) == 0);
}
