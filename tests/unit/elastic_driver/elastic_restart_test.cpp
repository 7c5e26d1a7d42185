// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/elastic_restart.hpp"

#include <csignal>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

/// A job on host a with two workers. Events are given one after the other.
class OneHost {
 public:
  explicit OneHost(const ElasticRules& rules) : state_(begin_membership(rules, now_)) {
    apply(HostsOffered{discovery::HostSet({{.name = "a", .slots = 2}})});
  }

  void apply(const MembershipEvent& event) {
    state_ = next(std::move(state_), event, now_);
    if (state_.orders.finish) end_ = *state_.orders.finish;
  }

  /// Both workers have called: the first generation runs.
  void run() {
    for (const int worker : {0, 1}) apply(WorkerStarted{worker});
    for (const int worker : {0, 1}) apply(WorkerCalled{.worker = worker, .attempt = 1});
  }

  void ends(int worker, int status) {
    apply(WorkerEnded{{.rank = Rank{worker}, .wait_status = status}});
  }

  /// All agents have ended, if they were told to.
  void close() { apply(AgentClosed{0}); }

  RestartDecision decide(std::string_view most, std::string_view after = "") const {
    return decide_restart(RestartPolicy::parse(most, after).value(), state_, end_.value(), earlier_,
                          now_);
  }

  void wait(Duration time) {
    now_ += time;
    apply(Ticked{});
  }

  const JobEnd& end() const { return end_.value(); }

  std::vector<TimePoint> earlier_;

 private:
  TimePoint now_{1000s};
  MembershipState state_;
  std::optional<JobEnd> end_;
};

ElasticRules rules() {
  return {.min_np = 1, .max_np = 2, .np = 2, .slot_restarts = 0, .elastic_timeout = 60s};
}

OneHost after_ends(int status) {
  OneHost job(rules());
  job.run();
  job.ends(0, status);
  job.ends(1, status);
  job.close();
  return job;
}

}  // namespace

TEST_CASE("an elastic job whose workers were all killed is started again") {
  const auto job = after_ends(SIGKILL);
  CHECK(job.end().exit_code == 128 + SIGKILL);
  CHECK(job.decide("1").restart);
  CHECK_FALSE(job.decide("0").restart);
  CHECK(job.decide("0").why.empty());
}

TEST_CASE("restarts of an elastic job are counted") {
  auto job = after_ends(SIGKILL);
  job.earlier_ = {TimePoint{10s}};
  CHECK(job.decide("1").why == "not restarted: --max-restarts is used up");
  CHECK(job.decide("2").restart);
}

TEST_CASE("a failure of an elastic program is started again only where the user says so") {
  const auto job = after_ends(3 << 8);
  CHECK(job.end().exit_code == 3);
  CHECK_FALSE(job.decide("1").restart);
  CHECK_THAT(job.decide("1").why, Catch::Contains("failure of the program"));
  CHECK(job.decide("1", "3").restart);
  CHECK_FALSE(job.decide("1", "4").restart);
}

TEST_CASE("an elastic job that has lost its host is started again") {
  OneHost job(rules());
  job.run();
  job.apply(AgentLost{0, {Errc::peer_lost, "no heartbeat"}});
  CHECK(job.end().exit_code == 125);
  CHECK(job.decide("1").restart);
}

TEST_CASE("an elastic job whose agent cannot be started is not started again") {
  OneHost job(rules());
  job.apply(AgentLost{0, {Errc::not_found, "no horo-agent"}});
  CHECK_FALSE(job.decide("1").restart);
}

TEST_CASE("an elastic job that waited for workers in vain is started again") {
  auto rule = rules();
  rule.min_np = 2;
  OneHost job(rule);
  job.run();
  job.apply(HostsOffered{discovery::HostSet({{.name = "a", .slots = 1}})});
  job.ends(1, SIGTERM);
  job.apply(WorkerCalled{.worker = 0, .attempt = 2, .generation = 1});
  for (int i = 0; i < 2; ++i) job.wait(40s);
  job.ends(0, SIGTERM);
  job.close();
  CHECK(job.end().cause == EndCause::shortage);
  CHECK(job.decide("1").restart);
}

TEST_CASE("a reset limit that a killed worker has reached ends only the attempt") {
  auto rule = rules();
  rule.reset_limit = 0;
  OneHost job(rule);
  job.run();
  job.ends(1, SIGKILL);
  job.ends(0, SIGTERM);
  job.close();
  CHECK(job.end().cause == EndCause::worker);
  CHECK(job.decide("1").restart);
}

TEST_CASE("an elastic job that a signal or its time limit ended is not started again") {
  OneHost stopped(rules());
  stopped.run();
  stopped.apply(LauncherSignalled{SIGTERM});
  stopped.ends(0, SIGTERM);
  stopped.ends(1, SIGTERM);
  stopped.close();
  CHECK_FALSE(stopped.decide("1", "any").restart);
  CHECK(stopped.decide("1", "any").why.empty());
  OneHost late(rules());
  late.run();
  late.ends(1, SIGKILL);
  late.apply(JobTimedOut{});
  late.ends(0, SIGTERM);
  late.close();
  CHECK(late.end().cause == EndCause::time_limit);
  CHECK_FALSE(late.decide("1", "any").restart);
}

TEST_CASE("an elastic job is not started again while an agent of it may be left") {
  OneHost job(rules());
  job.run();
  job.ends(0, SIGKILL);
  job.ends(1, SIGKILL);
  for (int i = 0; i < 10; ++i) job.wait(600s);
  CHECK_THAT(job.decide("1").why, Catch::Contains("processes of this attempt are still there"));
}
