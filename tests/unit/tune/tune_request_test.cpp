// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/trials/tune_request.hpp"

#include <catch2/catch.hpp>

#include "apps/tune/trials/trial_space.hpp"

using namespace horo;
using namespace horo::apps;

namespace {

Result<TuneRequest> request_of(std::vector<const char*> words) {
  HORO_TRY(const auto arguments, cli::parse_arguments(*cli::find_command("tune"), words));
  return read_tune_request(arguments, [](const char*) -> const char* { return nullptr; });
}

std::string request_fault(std::vector<const char*> words) {
  const auto request = request_of(std::move(words));
  return request ? "no fault" : request.error().message;
}

}  // namespace

TEST_CASE("options of horo run are passed on, and those of horo tune are not") {
  const auto request = request_of({"-np", "2", "--budget", "5m", "--no-stall-check", "--json", "-H",
                                   "a:1,b:1", "--resume", "st", "train.py", "--json"})
                           .value();
  CHECK(request.run_words ==
        std::vector<std::string>{"--np=2", "--no-stall-check=true", "--hosts=a:1,b:1"});
  CHECK(request.job.options.command == std::vector<std::string>{"train.py", "--json"});
  CHECK(request.job.options.np == 2);
  CHECK(request.budget_seconds == 300);
  CHECK(request.resume == "st");
  CHECK(request.json);
  CHECK(request.mode == TrialMode::automatic);
}

TEST_CASE("the file of --resume and a folder for results exclude each other online") {
  CHECK(request_fault({"--resume", "st", "--autotune-memory", "m", "x"})
            .find("--resume and --autotune-memory exclude each other") == 0);
  CHECK(request_fault({"--resume", "st", "--autotune-memory", "m", "--restart", "x"}) ==
        "no fault");
  CHECK(request_fault({"--autotune-memory", "m", "x"}) == "no fault");
}

TEST_CASE("options that only restarts can follow ask for restarts") {
  CHECK(request_of({"--space", "s", "x"}).value().mode == TrialMode::restart);
  CHECK(request_of({"--trials", "5", "x"}).value().mode == TrialMode::restart);
  CHECK(request_of({"--online", "x"}).value().mode == TrialMode::online);
  CHECK(request_fault({"--online", "--space", "s", "x"}) ==
        "--space needs restarts, which --online excludes");
  CHECK(request_fault({"--online", "--restart", "x"}) ==
        "--online and --restart exclude each other");
}

TEST_CASE("a wrong option names what is allowed") {
  CHECK(request_fault({"--budget", "5x", "x"}) ==
        "option '--budget': '5x' must be a time above 0, like 90s, 5m or 1.5h");
  CHECK(request_fault({"--budget", "0", "x"}).find("must be a time above 0") != std::string::npos);
  CHECK(request_fault({"--trials", "1", "x"}).find("must be a whole number from 2") !=
        std::string::npos);
  CHECK(request_fault({"--failures", "0", "x"}).find("from 1 to") != std::string::npos);
  CHECK(request_fault({"-np", "2"}) == "no command to run is given");
  CHECK(parse_budget("1.5h").value() == 5400);
}

TEST_CASE("a job is known to have several hosts only if its ranks need more than one") {
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  const auto shape = [&](std::vector<const char*> words) {
    words.emplace_back("x");
    return shape_of(request_of(std::move(words)).value().job, nothing);
  };
  CHECK(shape({"-np", "2"}) == JobShape::one_host);
  CHECK(shape({"-H", "a:1,b:1"}) == JobShape::several_hosts);
  CHECK(shape({"-np", "2", "-H", "a:2,b:2"}) == JobShape::one_host);
  CHECK(shape({"-np", "2", "-H", "a:2,b:2", "--ranks-per-host", "1"}) == JobShape::several_hosts);
  // horo run says what is wrong with these.
  CHECK(shape({"--hostfile", "/nowhere/hosts"}) == JobShape::unknown);
  CHECK(shape({"-np", "9", "-H", "a:1"}) == JobShape::unknown);
}

TEST_CASE("a job that leaves only the small message free has something to tune between hosts") {
  const auto settings =
      request_of({"--fusion-threshold", "1MiB", "--cycle-time", "0", "--wake-delay", "50us", "x"})
          .value()
          .job.settings;
  CHECK(runtime_has_free_knob(settings, JobShape::several_hosts));
  CHECK(runtime_has_free_knob(settings, JobShape::unknown));
  CHECK_FALSE(runtime_has_free_knob(settings, JobShape::one_host));
  CHECK(runtime_has_free_knob(Settings(), JobShape::one_host));
}

TEST_CASE("knobs that the user has set are not among the dimensions") {
  CHECK(knob_dimensions(Settings()).value().size() == 2);
  CHECK(knob_dimensions(Settings(), JobShape::several_hosts).value().size() == 3);
  const auto one = request_of({"--cycle-time", "1ms", "x"}).value();
  const auto dimensions = knob_dimensions(one.job.settings).value();
  REQUIRE(dimensions.size() == 1);
  CHECK(dimensions[0].dimension.name == "fusion.threshold");
  const auto space = TrialSpace::make(dimensions).value();
  CHECK(space.describe(space.space().fallback()) == "fusion.threshold=64MiB");
  CHECK(space.words_of(space.space().fallback()).flag_words() ==
        std::vector<std::string>{"--fusion-threshold=64MiB"});
  CHECK(space.shown(space.space().fallback()) == std::vector<std::string>{"64"});
}
