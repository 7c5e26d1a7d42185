// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "launcher/plan/job_plan.hpp"
#include "launcher/plan/job_request.hpp"

using namespace horo;
using namespace horo::launcher;

namespace {

using Flags = std::vector<Given>;

JobRequest request(Flags flags, std::optional<int> np = {}) {
  static constexpr const char* kNone[] = {nullptr};
  JobRequest made{.command = {"true"}, .directory = "/", .environment = kNone};
  made.np = np;
  made.settings = Settings::resolve({.flags = std::move(flags)}).value();
  return made;
}

std::string refusal(const JobRequest& made) {
  const auto size = elastic_size(made);
  return size ? "not refused" : size.error().message;
}

}  // namespace

TEST_CASE("a job is elastic with a least or a largest number of ranks") {
  CHECK_FALSE(elastic_size(request({}, 2)).value());
  const auto least = elastic_size(request({{.name = "min-np", .value = "2"}}, 4)).value();
  REQUIRE(least);
  CHECK((least->np == 4 && least->least == 2 && !least->limited));
  const auto most = elastic_size(request({{.name = "max-np", .value = "8"}}, 4)).value();
  REQUIRE(most);
  CHECK((most->np == 4 && most->least == 4 && most->most == 8));
  const auto alone = elastic_size(request({{.name = "min-num-proc", .value = "3"}})).value();
  REQUIRE(alone);
  CHECK((alone->np == 3 && alone->least == 3));
}

TEST_CASE("a discovery script alone makes a job elastic only under horovodrun's name") {
  auto made = request({}, 2);
  made.script = "./hosts";
  CHECK_FALSE(elastic_size(made).value());
  made.format = OutputFormat::horovod;
  CHECK(elastic_size(made).value());
}

TEST_CASE("numbers of ranks that do not fit together are refused") {
  CHECK_THAT(refusal(request({{.name = "min-np", .value = "3"}}, 2)),
             Catch::Contains("--min-np 3 is more than -np 2"));
  CHECK_THAT(refusal(request({{.name = "max-np", .value = "3"}}, 4)),
             Catch::Contains("--max-np 3 is less than the 4 ranks"));
}

TEST_CASE("a number of ranks of 0 that would leave the job static is refused with the way out") {
  CHECK(refusal(request({{.name = "min-np", .value = "0"}}, 4)) ==
        "--min-np 0 (flag --min-np) does not make the job elastic; give the number of ranks with "
        "which the job goes on, 1 or more, or leave it out");
  CHECK_THAT(refusal(request({{.name = "max-num-proc", .value = "0"}}, 4)),
             Catch::Contains("--max-np 0 (flag --max-num-proc) does not"));
  const auto most = elastic_size(
      request({{.name = "min-np", .value = "0"}, {.name = "max-np", .value = "8"}}, 4));
  CHECK((most.value()->least == 4 && most.value()->most == 8));
}

TEST_CASE("options that an elastic job cannot have are refused with the way out") {
  const Flags elastic{{.name = "min-np", .value = "1"}};
  auto mpi = request(elastic, 2);
  mpi.starter = RankStarter::mpirun;
  CHECK_THAT(refusal(mpi), Catch::Contains("cannot have --mpi: mpirun starts a fixed number"));
  auto jsrun = request(elastic, 2);
  jsrun.starter = RankStarter::jsrun;
  CHECK_THAT(refusal(jsrun), Catch::Contains("--jsrun"));
  auto plan = request(elastic, 2);
  plan.saved_plan.emplace();
  CHECK_THAT(refusal(plan), Catch::Contains("--plan"));
  for (const auto& flag : Flags{{"stdin", "rank0", {}}, {"map-by", "spread", {}}}) {
    CHECK_THAT(refusal(request({elastic[0], flag}, 2)), Catch::Contains("--" + flag.name));
  }
}

TEST_CASE("the plan of an elastic job has the ranks for which there are slots now") {
  auto made = request({{.name = "min-np", .value = "2"}, {.name = "max-np", .value = "3"}}, 2);
  made.hosts = "localhost:8";
  const auto plan = plan_job(made, probe_job(made).value()).value();
  CHECK(plan.size() == 3);
  CHECK(plan.offered.slots() == 8);
  CHECK_FALSE(plan.offer_may_change);
  CHECK(plan.agents.front().held);
  made.hosts.clear();
  CHECK(plan_job(made, probe_job(made).value()).value().offered.slots() == 3);
  made.script = "true";
  const auto nowhere = plan_job(made, probe_job(made).value()).value();
  CHECK(nowhere.size() == 0);
  CHECK(nowhere.offer_may_change);
}

TEST_CASE("hosts that join are planned with the job's id and secret, and all their slots") {
  auto made = request({{.name = "min-np", .value = "1"}, {.name = "max-np", .value = "2"}}, 1);
  made.hosts = "localhost:1";
  const auto first = plan_job(made, probe_job(made).value()).value();
  made.joining.emplace(
      JoiningHosts{.hosts = discovery::HostSet({{.name = "localhost", .slots = 4}}),
                   .job_id = first.job_id,
                   .secret = first.secret});
  const auto later = plan_job(made, probe_job(made).value()).value();
  REQUIRE(later.agents.size() == 1);
  CHECK(later.agents.front().ranks.size() == 4);
  CHECK(later.agents.front().secret == first.secret);
  CHECK(later.agents.front().ranks.front().job_id == first.job_id);
}
