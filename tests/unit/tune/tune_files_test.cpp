// SPDX-License-Identifier: Apache-2.0
// The files of a search: the space, the state, and the config file that it leaves.
#include <cmath>

#include <catch2/catch.hpp>

#include "apps/common/config_file.hpp"
#include "apps/tune/record/read_tune_log.hpp"
#include "apps/tune/trials/kept_setting.hpp"
#include "apps/tune/trials/online_state.hpp"
#include "apps/tune/trials/space_file.hpp"
#include "apps/tune/trials/state_file.hpp"
#include "base/knobs/knobs.hpp"
#include "tests/unit/tune/trial_spaces.hpp"
#include "tests/unit/tune/tune_logs.hpp"

using namespace horo;
using namespace horo::apps;

namespace {

const char* nothing_set(const char*) {
  return nullptr;
}

Result<std::vector<TrialDimension>> space_in(const std::string& text) {
  HORO_TRY(const auto document, parse_document(text, "s.yaml"));
  return space_of_document(document, nothing_set);
}

std::string fault_in(const std::string& text) {
  const auto space = space_in(text);
  return space ? "no fault" : space.error().message;
}

}  // namespace

TEST_CASE("a file of variables becomes words, numbers and conditions") {
  const auto dimensions = space_in(R"(
variables:
  NCCL_ALGO: [~, Ring, Tree]
  OMP_NUM_THREADS: {least: 1, most: 16, default: 4}
  RATIO: {least: 0.5, most: 2.5, scale: linear, default: 1}
  NCCL_PROTO: {words: [LL, Simple], default: Simple, when: {NCCL_ALGO: Ring}}
mpi_args:
  eager: ["", "--mca btl_tcp_eager_limit 65536"]
)")
                              .value();
  REQUIRE(dimensions.size() == 5);
  CHECK(std::get<std::string>(dimensions[0].dimension.fallback) == kUnsetWord);
  CHECK(std::get<std::int64_t>(dimensions[1].dimension.fallback) == 4);
  CHECK(std::get<autotune::RealRange>(dimensions[2].dimension.range).most == 2.5);
  CHECK(std::get<std::string>(dimensions[3].dimension.fallback) == "Simple");
  CHECK(dimensions[3].dimension.when->category == "Ring");
  CHECK(dimensions[4].target == ValueTarget::mpi_args);

  const auto space = TrialSpace::make(dimensions).value();
  auto setting = space.space().fallback();
  auto words = space.words_of(setting);
  CHECK(words.unset == std::vector<std::string>{"NCCL_ALGO"});
  CHECK(words.mpi_args.empty());
  setting[0] = std::string("Ring");
  setting[4] = std::string("--mca btl_tcp_eager_limit 65536");
  words = space.words_of(setting);
  CHECK(words.variable_words() == std::vector<std::string>{"NCCL_ALGO=Ring", "OMP_NUM_THREADS=4",
                                                           "RATIO=1", "NCCL_PROTO=Simple"});
  CHECK(words.flag_words() ==
        std::vector<std::string>{"--mpi-args=--mca btl_tcp_eager_limit 65536"});
  CHECK(command_to_keep(words) ==
        "NCCL_ALGO=Ring OMP_NUM_THREADS=4 RATIO=1 NCCL_PROTO=Simple horo run "
        "--mpi-args='--mca btl_tcp_eager_limit 65536' ...");
}

TEST_CASE("a file can name values of Horo's own settings, which become flags") {
  const auto space =
      TrialSpace::make(
          space_in("knobs: {shm.chunk: [512KiB, 65536B], hierarchical.allreduce: [true, false]}")
              .value())
          .value();
  auto setting = space.space().fallback();
  CHECK(space.words_of(setting).flag_words() ==
        std::vector<std::string>{"--shm-chunk=512KiB", "--hierarchical-allreduce=true"});
  setting[0] = std::string("64KiB");
  CHECK(space.describe(setting) == "shm.chunk=64KiB hierarchical.allreduce=true");
  CHECK(space.shown(setting) == std::vector<std::string>{"64KiB", "true"});
  CHECK(fault_in("knobs: {shm.chank: [1KiB]}").find("'shm.chank' is no key") != std::string::npos);
  CHECK(fault_in("knobs: {shm.chunk: [1KiB]}").find("shm.chunk: '1KiB' must be ") !=
        std::string::npos);
  CHECK(fault_in("knobs: {shm.chunk: [~]}").find("always has a value") != std::string::npos);
}

TEST_CASE("a value of the environment outside the list leaves the default that is written") {
  for (const char* now : {"z", "x"}) {
    const auto document =
        parse_document("variables: {A: {words: [x, y, w], default: y}}", "s").value();
    const auto dimensions = space_of_document(document, [now](const char*) { return now; });
    const bool listed = now == std::string("x");
    CHECK(dimensions.value()[0].dimension.fallback ==
          autotune::Value(std::string(listed ? "x" : "y")));
  }
}

TEST_CASE("the default of a variable is what the environment has") {
  const auto document =
      parse_document("variables: {A: [x, y], N: {least: 1, most: 8, default: 2}}", "s").value();
  const auto dimensions = space_of_document(document, [](const char* name) {
                            return std::string_view(name) == "A" ? "y" : "5";
                          }).value();
  CHECK(std::get<std::string>(dimensions[0].dimension.fallback) == "y");
  CHECK(std::get<std::int64_t>(dimensions[1].dimension.fallback) == 5);
}

TEST_CASE("a wrong file of variables is an error with its place") {
  CHECK(fault_in("variables: {A=B: [x, y]}").find("'A=B' is no name") != std::string::npos);
  CHECK(fault_in("") ==
        "s.yaml:1:1: the file must have the keys 'variables', 'knobs' or 'mpi_args'");
  CHECK(fault_in("variabels: {A: [x]}").find("did you mean 'variables'") != std::string::npos);
  CHECK(fault_in("variables: {}") == "s.yaml:1:1: the file names no variable to search");
  CHECK(fault_in("variables:\n  A: [x, x]").find("s.yaml:2:10: 'x' is listed twice") == 0);
  CHECK(fault_in("variables: {A: 5}").find("a list of words") != std::string::npos);
  CHECK(fault_in("variables: {A: {least: 1}}").find("needs 'least' and 'most'") !=
        std::string::npos);
  CHECK(fault_in("variables: {A: {least: 1, most: 4}}").find("needs a 'default'") !=
        std::string::npos);
  CHECK(fault_in("variables: {A: {least: 1, mots: 4}}").find("did you mean 'most'") !=
        std::string::npos);
  CHECK(fault_in("variables: {HORO_CYCLE_TIME: [1, 2]}").find("is a setting of Horo") !=
        std::string::npos);
  CHECK(fault_in("variables: {A: [x], A: [y]}").find("key 'A' is given twice") !=
        std::string::npos);
  CHECK(fault_in("variables: [").find("s.yaml:1:") == 0);
  // The range itself is checked by the space.
  CHECK_FALSE(
      TrialSpace::make(space_in("variables: {A: {least: 9, most: 4, default: 5}}").value()));
}

TEST_CASE("a search survives its file, failures included") {
  const auto space = algo_space();
  auto driver = TrialDriver::make(space.space(), {}, {}).value();
  for (int i = 0; i < 30 && driver.next().stop == TrialStop::none; ++i) {
    const bool tree = std::get<std::string>(driver.next().setting[1]) == "tree";
    if (i == 3) {
      driver.finished({.ending = TrialEnding::failed, .seconds = 1, .failure = "exit \"3\""});
    } else {
      driver.finished({.score = (tree ? 150 : 100) + i % 3 / 3.0, .seconds = 1.25});
    }
  }
  CHECK(driver.state().search.challenger);
  const SavedSearch search{.command = {"--np=2", "--", "train", ""},
                           .objective = Objective::throughput,
                           .state = driver.state()};
  const auto text = state_text(search, space);
  const auto read =
      state_of_document(parse_document(text, "st").value(), space, search.command).value();
  CHECK(read.objective == Objective::throughput);
  CHECK(state_text(read, space) == text);
  CHECK(read.state.search.turns == driver.state().search.turns);
  CHECK(read.state.trials[3].result.failure == "exit \"3\"");
  CHECK(std::isnan(read.state.search.measurements[3].score));
}

TEST_CASE("a state of another command, space or version, or damaged, is refused with a way out") {
  const auto space = algo_space();
  const auto text = state_text({.command = {"--", "train"}}, space);
  const auto read = [&](const std::string& changed, const std::vector<std::string>& command) {
    const auto document = parse_document(changed, "st");
    if (!document) return document.error().message;
    const auto search = state_of_document(*document, space, command);
    return search ? std::string("no fault") : search.error().message;
  };
  CHECK(read(text, {"--", "train"}) == "no fault");
  CHECK(read(text, {"--", "other"}).find("for another command; name another file with --resume") !=
        std::string::npos);
  CHECK(read("{}", {"--", "train"}).find("no state of a search") != std::string::npos);
  auto other = text;
  other.replace(other.find("1 to 16"), 7, "1 to 17");
  CHECK(read(other, {"--", "train"}).find("for another space") != std::string::npos);
  CHECK(read(text.substr(0, text.size() / 2), {"--", "train"}) != "no fault");
  other = text;
  other.replace(other.find("\"measurements\""), 14, "\"measurement\"");
  CHECK(read(other, {"--", "train"}).find("'measurements' is missing or damaged") !=
        std::string::npos);
}

TEST_CASE("a search online survives its file, which restarts do not read as theirs") {
  const OnlineSearch search{.command = {"--np=2", "--", "train", ""},
                            .results = {"horo tuning results, version 2", "end 0"},
                            .searches = {"horo tuning searches, version 1", "a\tb\"c", "end 1"}};
  const auto document = parse_document(online_text(search), "st").value();
  CHECK(is_online_search(document));
  CHECK(online_of_document(document, search.command).value() == search);
  const auto fault_in = [](const std::string& text, const std::vector<std::string>& command) {
    const auto read = online_of_document(parse_document(text, "st").value(), command);
    return read ? std::string("no fault") : read.error().message;
  };
  CHECK(fault_in(online_text(search), {"--", "other"}).find("for another command; name another") !=
        std::string::npos);
  CHECK(fault_in("{}", {}).find("no state of a search of version 1") != std::string::npos);
  CHECK(fault_in(R"({"horo_tune": 1, "command": [], "online": {"results": []}})", {})
            .find("'searches' is missing or damaged") != std::string::npos);
  const auto restarts = state_text({.command = {"--", "train"}}, algo_space());
  CHECK_FALSE(is_online_search(parse_document(restarts, "st").value()));
  CHECK(fault_in(restarts, {"--", "train"}).find("a search by restarts, which --online") !=
        std::string::npos);
}

TEST_CASE("the config file can be read, and keeps what the job's own file had") {
  const auto given = parse_config(
                         "cycle: {time: 3ms}\nstall: {warning: {time: 90s}}\n"
                         "autotune: {enabled: true}\n",
                         "job.yaml")
                         .value();
  const auto settings =
      Settings::resolve({.environment = {}, .config = given, .flags = {}}).value();
  const SettingWords words{.knobs = {{"fusion.threshold", "4672KiB"}, {"cycle.time", "500us"}},
                           .variables = {{"NCCL_ALGO", "Ring"}},
                           .unset = {},
                           .mpi_args = {}};
  const auto text = config_file_text(&words, settings, "keep\nit");
  const auto read = parse_config(text, "tuned.yaml").value();
  const auto tuned = Settings::resolve({.environment = {}, .config = read, .flags = {}}).value();
  CHECK(tuned.get(knobs::kFusionThreshold) == Bytes{4672ULL << 10});
  CHECK(tuned.get(knobs::kCycleTime) == std::chrono::microseconds(500));
  CHECK(tuned.get(knobs::kStallWarningTime) == std::chrono::seconds(90));
  CHECK_FALSE(tuned.get(knobs::kAutotune));
  CHECK(text.find("# Set this variable too: NCCL_ALGO=Ring\n") != std::string::npos);

  const auto stays = config_file_text(nullptr, Settings(), "the default stays");
  CHECK(parse_config(stays, "x").value().empty());
}

TEST_CASE("a setting of a log becomes the knobs that it stands for") {
  const auto record = parse_tune_log(horo_log(), "x").value();
  const auto words = words_of_log(record, record.ending->values);
  CHECK(words.flag_words() == std::vector<std::string>{"--fusion-threshold=8MiB",
                                                       "--cycle-time=500us", "--wake-delay=50us"});
}
