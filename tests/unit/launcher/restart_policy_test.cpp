// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/restart_policy.hpp"

#include <csignal>

#include <catch2/catch.hpp>

#include "launcher/job/job_state.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

RestartPolicy policy(std::string_view most, std::string_view after = "") {
  return RestartPolicy::parse(most, after).value();
}

JobState begin() {
  return initial_state(make_generation(
      Epoch{1},
      place(discovery::HostSet(std::vector<discovery::Host>{{"a", 2}, {"b", 2}}), {.np = 4})
          .value()));
}

JobState ended(const JobEvent& event) {
  auto state = begin();
  for (int rank = 0; rank < 4; ++rank) state = next(std::move(state), RankStarted{Rank{rank}});
  state = next(std::move(state), event);
  for (std::size_t host = 0; host < 2; ++host)
    state = next(std::move(state), HostFinished{host, 0});
  return state;
}

JobEvent status(int wait_status) {
  return RankEnded{{.rank = Rank{1}, .wait_status = wait_status}};
}

bool restarts(const RestartPolicy& policy, const JobState& state) {
  return decide_restart(policy, state, {}, TimePoint{}).restart;
}

}  // namespace

TEST_CASE("failures of hosts and of the system are restarted, the program's are not") {
  const auto some = policy("3");
  CHECK(restarts(some, ended(HostLost{1, {Errc::peer_lost, "silent"}})));
  CHECK(restarts(some, ended(status(SIGKILL))));
  CHECK(!restarts(some, ended(status(SIGSEGV))));
  CHECK(!restarts(some, ended(status(1 << 8))));
  CHECK(!restarts(some, ended(HostLost{1, {Errc::not_found, "no horo-agent"}})));
  CHECK(!restarts(some, ended(HostLost{1, {Errc::version_mismatch, "other version"}})));
  CHECK(!restarts(some, ended(TimeLimitPassed{})));
  CHECK(restarts(some, next(begin(), StartTimedOut{})));
  CHECK(!restarts(some, next(begin(), RankNotSpawned{Rank{0}, {Errc::not_found, "no program"}})));
  CHECK(
      restarts(some, next(begin(), RankNotSpawned{Rank{0}, {Errc::unavailable, "no processes"}})));
  CHECK(!restarts(policy("0"), ended(status(SIGKILL))));
}

TEST_CASE("a job that the user ended is not restarted, whether a failure came before or after") {
  CHECK(!restarts(policy("3", "any"), ended(SignalReceived{SIGINT})));
  auto state = ended(status(SIGKILL));
  CHECK(restarts(policy("3"), state));
  state = next(begin(), status(SIGKILL));
  state = next(std::move(state), SignalReceived{SIGINT});
  CHECK(!restarts(policy("3"), state));
}

TEST_CASE("exit codes and signals of the program that allow a restart can be listed") {
  CHECK(restarts(policy("1", "75,100-110"), ended(status(105 << 8))));
  CHECK(!restarts(policy("1", "75,100-110"), ended(status(111 << 8))));
  CHECK(restarts(policy("1", "SIGSEGV"), ended(status(SIGSEGV))));
  CHECK(restarts(policy("1", "any"), ended(status(1 << 8))));
}

TEST_CASE("restarts are counted, within a time span if one is given") {
  const auto state = ended(status(SIGKILL));
  const TimePoint now{100s};
  CHECK(decide_restart(policy("2"), state, {now - 90s}, now).restart);
  const auto spent = decide_restart(policy("2"), state, {now - 90s, now - 1s}, now);
  CHECK(!spent.restart);
  CHECK(spent.why == "not restarted: --max-restarts is used up");
  CHECK(decide_restart(policy("2/60"), state, {now - 90s, now - 1s}, now).restart);
  CHECK(!decide_restart(policy("2/1min"), state, {now - 59s, now - 1s}, now).restart);
}

TEST_CASE("pauses before restarts grow up to half a minute") {
  CHECK(restart_pause(0) == 0s);
  CHECK(restart_pause(1) == 1s);
  CHECK(restart_pause(3) == 7s);
  CHECK(restart_pause(1000) == 30s);
}

TEST_CASE("hosts that are lost or late are bad, a host whose way to the launcher was lost is not") {
  using Hosts = std::vector<std::size_t>;
  const auto bad_hosts = [](const JobState& state) { return state.generation.bad_hosts; };
  CHECK(bad_hosts(ended(HostLost{1, {Errc::peer_lost, "silent"}})) == Hosts{1});
  auto state = next(begin(), HostLost{0, {Errc::peer_lost, "silent"}});
  state = next(std::move(state), HostLost{1, {Errc::cancelled, "host 'a' is gone"}});
  CHECK(bad_hosts(state) == Hosts{0});
  CHECK(bad_hosts(next(begin(), StartTimedOut{"host b: connecting", {1}})) == Hosts{1});
  CHECK(bad_hosts(ended(status(SIGKILL))).empty());
}

TEST_CASE("survivors or a notice prevent a restart") {
  auto state = ended(status(SIGKILL));
  state.generation.survivors = 1;
  CHECK(!restarts(policy("3"), state));
  state.generation.survivors = 0;
  CHECK(restarts(policy("3"), state));
  state.noticed = true;
  CHECK(!restarts(policy("3"), state));
}

TEST_CASE("a malformed policy is refused with the reason") {
  const auto refusal = [](std::string_view most, std::string_view after) {
    const auto parsed = RestartPolicy::parse(most, after);
    return parsed ? std::string() : parsed.error().message;
  };
  CHECK_THAT(refusal("many", ""), Catch::Contains("'many' is not a number"));
  CHECK_THAT(refusal("3/never", ""), Catch::Contains("behind the slash"));
  CHECK_THAT(refusal("3/", ""), Catch::Contains("behind the slash"));
  CHECK_THAT(refusal("-1", ""), Catch::Contains("'-1'"));
  CHECK_THAT(refusal("1", "SIGNONE"), Catch::Contains("'SIGNONE'"));
  CHECK_THAT(refusal("1", "0"), Catch::Contains("'0'"));
  CHECK_THAT(refusal("1", "7-5"), Catch::Contains("'7-5'"));
}
