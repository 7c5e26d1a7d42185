// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include <cmath>

#include "apps/tune/record/read_tune_log.hpp"
#include "apps/tune/record/summary_views.hpp"
#include "apps/tune/trials/kept_setting.hpp"
#include "apps/tune/trials/space_file.hpp"
#include "apps/tune/trials/state_file.hpp"
#include "tests/unit/tune/trial_spaces.hpp"
#include "tests/unit/tune/tune_logs.hpp"

namespace horo::fuzz {

namespace {

using namespace horo::apps;

std::string run_log(std::string_view bytes) {
  const auto record = parse_tune_log(bytes, "x.csv");
  if (!record)
    return record.error().code == Errc::invalid_argument ? "" : "the error is not invalid_argument";
  for (const auto& sample : record->samples) {
    if (sample.values.size() != record->columns.size()) return "a sample lacks a value";
    if (sample.failure.empty() && !(std::isfinite(sample.score) && sample.score > 0))
      return "a score is no number above 0";
  }
  const auto summary = summarise(*record);
  if (summary.verdicts.empty()) return "there is no verdict";
  if (summary.best_so_far.size() != record->samples.size()) return "the curve has gaps";
  if (summary.best)
    static_cast<void>(words_of_log(*record, summary.settings[*summary.best].values));
  return summary_page(*record, summary).find("</html>") == std::string::npos ? "no page" : "";
}

const std::vector<std::string>& trained_command() {
  static const std::vector<std::string> command{"--", "train"};
  return command;
}

std::string run_state(std::string_view bytes) {
  const auto document = parse_document(std::string(bytes), "st");
  const auto space = algo_space();
  const auto search = document ? state_of_document(*document, space, trained_command())
                               : Result<SavedSearch>(Failure(document.error()));
  if (!search) return search.error().message.starts_with("st:") ? "" : "the error names no place";
  auto driver = TrialDriver::make(space.space(), {}, search->state);
  if (!driver) return "a search that was accepted cannot continue";
  static_cast<void>(driver->next());
  static_cast<void>(driver->outcome());
  return "";
}

std::string run_space(std::string_view bytes) {
  const auto document = parse_document(std::string(bytes), "s");
  if (!document) return document.error().message.starts_with("s:") ? "" : "no place is named";
  const auto dimensions =
      space_of_document(*document, [](const char*) -> const char* { return nullptr; });
  if (!dimensions) return dimensions.error().message.starts_with("s:") ? "" : "no place is named";
  const auto space = TrialSpace::make(*dimensions);
  if (!space) return "";
  return space->space().check(space->space().fallback()) ? "" : "the default is not in the space";
}

std::string some_state() {
  auto driver = TrialDriver::make(algo_space().space(), {}, {}).value();
  for (int i = 0; i < 28 && driver.next().stop == TrialStop::none; ++i) {
    const bool tree = std::get<std::string>(driver.next().setting[1]) == "tree";
    driver.finished({.score = tree ? 150.0 + i % 3 : 100.0 + i % 2, .seconds = 1});
  }
  return state_text({.command = trained_command(), .state = driver.state()}, algo_space());
}

}  // namespace

std::vector<Target> tune_targets() {
  return {
      {.name = "tune-log",
       .run = run_log,
       .seeds = {horo_log(), std::string(kHorovodHeader) + "0,0,0, 0,5,4,332\n0,1,0,0,9,8,300\n"},
       .words = {",", "\n", "nan", "inf", "-1", "1e308", "0", "duel", "challenger won", "score"},
       .rounds = 500},
      {.name = "tune-state",
       .run = run_state,
       .seeds = {some_state()},
       .words = {"null", "\"challenger\": ", "[", "]", "{", "}", "\"tree\"", "1e300", "-1",
                 "\"challenger won\"", "\"default stays\""},
       .rounds = 1000},
      {.name = "tune-space",
       .run = run_space,
       .seeds = {"variables:\n  A: [~, x, y]\n  N: {least: 1, most: 16, default: 4}\n"
                 "  R: {least: 0.5, most: 2, scale: linear, default: 1, when: {A: x}}\n"
                 "mpi_args:\n  e: ['', '--mca a b']\n"},
       .words = {": ", "\n", "  ", "[", "]", "{", "}", "~", "step: 3", "words: [a]", "1e400",
                 "99999999999999999999"},
       .rounds = 4000}};
}

}  // namespace horo::fuzz
