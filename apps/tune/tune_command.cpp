// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/tune_command.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

#include "apps/common/replace_file.hpp"
#include "apps/common/shell.hpp"
#include "apps/common/tools.hpp"
#include "apps/tune/trials/kept_setting.hpp"
#include "apps/tune/trials/space_file.hpp"
#include "apps/tune/trials/tune_runs.hpp"
#include "base/exit_code.hpp"
#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"

namespace horo::apps {

namespace {

constexpr const char* kUsualConfigFile = "horo-tuned.yaml";

/// Where the knobs that can be tuned were set.
std::string origins_of_set_knobs(const Settings& settings) {
  std::string text;
  for (const auto& key : {knobs::kFusionThreshold.text.key, knobs::kCycleTime.text.key,
                          knobs::kWakeDelay.text.key, knobs::kSmallMessage.text.key}) {
    if (settings.is_set(key))
      text += fmt::format("{}{} by {}", text.empty() ? "" : ", ", key, settings.origin(key).text());
  }
  return text;
}

/// Everything that restarts search. Fails: invalid_argument (nothing is left to search).
Result<TrialSpace> space_of(const TuneRequest& request, JobShape shape) {
  HORO_TRY(auto dimensions, knob_dimensions(request.job.settings, shape));
  if (!request.space.empty()) {
    HORO_TRY(const auto document, read_document(request.space));
    HORO_TRY(auto others,
             space_of_document(document, [](const char* name) { return std::getenv(name); }));
    for (auto& other : others) {
      const bool mpi = request.job.options.mpi || request.job.options.jsrun;
      if (other.target == ValueTarget::mpi_args && !mpi) {
        return fail(Errc::invalid_argument, "{}: 'mpi_args' needs --mpi or --jsrun", request.space);
      }
      const auto& name = other.dimension.name;
      if (other.target == ValueTarget::knob && request.job.settings.is_set(name)) {
        return fail(Errc::invalid_argument,
                    "{}: {} is to be searched, and it is set by {}; leave one of them out",
                    request.space, name, request.job.settings.origin(name).text());
      }
      dimensions.push_back(std::move(other));
    }
  }
  return TrialSpace::make(std::move(dimensions));
}

/// Fails where no trial could differ from another.
Status check_something_to_tune(const TuneRequest& request, const TrialSpace& space,
                               JobShape shape) {
  const auto& settings = request.job.settings;
  if (request.job.options.np == 1 && request.space.empty()) {
    return fail(Errc::invalid_argument,
                "there is nothing to tune: a job of one rank reduces nothing; give -np 2 or more, "
                "or name variables of other libraries with --space");
  }
  const bool nothing = request.mode == TrialMode::restart ? space.space().nothing_to_tune()
                                                          : !runtime_has_free_knob(settings, shape);
  if (!nothing) return {};
  return fail(Errc::invalid_argument,
              "there is nothing to tune: {}; leave one of them out, or name variables of other "
              "libraries with --space",
              origins_of_set_knobs(settings));
}

std::string plan_of_trials(const TuneRequest& request, const TrialSpace& space, JobRuns& runs) {
  constexpr std::string_view kModes[] = {"online, then by restarts if the program ends too soon",
                                         "online", "by restarts"};
  auto text =
      fmt::format("trials: {}\nbudget: {}\n", kModes[static_cast<std::size_t>(request.mode)],
                  duration_text(request.budget_seconds));
  if (request.mode != TrialMode::online) {
    text += fmt::format("at most {} restarts\nthe default: {}\n", request.trials,
                        space.describe(space.space().fallback()));
  }
  const auto first = request.mode == TrialMode::restart ? space.words_of(space.space().fallback())
                                                        : SettingWords{};
  const auto command = job_command(request, runs.tool(), first, {});
  text += "first run:";
  for (const auto& word : first.variable_words()) text += " " + shell_quoted(word);
  for (const auto& word : command.arguments) text += " " + shell_quoted(word);
  return text + "\n";
}

/// Online, and by restarts where that is asked for or needed.
Result<TuneOutcome> tune(const TuneRequest& request, const TrialSpace& space, JobRuns& runs) {
  if (request.mode == TrialMode::restart)
    return tune_by_restarts(request, space, request.budget_seconds, runs);
  HORO_TRY(auto online, tune_online(request, runs));
  const bool ended_too_soon = !online.settled && !online.failed && online.signal == 0 &&
                              online.seconds < request.budget_seconds;
  if (request.mode == TrialMode::online || !ended_too_soon || space.space().nothing_to_tune())
    return online;
  runs.progress().done(
      fmt::format("the program ended after {}, before the search online did; from now on, each "
                  "trial is a run of its own",
                  duration_text(online.seconds)));
  return tune_by_restarts(request, space, request.budget_seconds - online.seconds, runs);
}

/// Writes the config file, if there is something to write.
Status write_config(const TuneRequest& request, const TuneOutcome& outcome, TuneSummary& summary) {
  if (request.config_out.empty() && !outcome.keep) return {};
  const auto path = request.config_out.empty() ? kUsualConfigFile : request.config_out;
  const auto& why = summary.verdicts.front();
  HORO_TRY_STATUS(replace_file(
      path, config_file_text(outcome.keep ? &*outcome.keep : nullptr, request.job.settings, why)));
  if (outcome.keep) summary.config_file = path;
  return {};
}

int finish_text(std::string_view text) {
  if (write_out(text)) return exit_code::kOk;
  return refuse_tuning(fail_errno(errno, "standard output").take());
}

}  // namespace

int refuse_tuning(const Error& error) {
  log::error("tune", "{}", printable(error.message));
  return exit_code::kFailure;
}

Status check_output_paths(std::span<const std::pair<std::string_view, std::string>> options) {
  for (const auto& [flag, path] : options) {
    if (path.empty()) continue;
    if (access(path.c_str(), F_OK) == 0 && access(path.c_str(), W_OK) == 0) continue;
    auto folder = std::filesystem::path(path).parent_path().string();
    if (folder.empty()) folder = ".";
    if (access(folder.c_str(), W_OK | X_OK) != 0)
      return fail_errno(errno, fmt::format("--{}: the folder of '{}'", flag, path));
  }
  return {};
}

int show_result(const TuneRecord& record, const TuneSummary& summary, const TuneViews& views) {
  const int shown =
      finish_text(views.json ? summary_json(record, summary) : summary_text(record, summary));
  if (views.html.empty()) return shown;
  const auto written = replace_file(views.html, summary_page(record, summary));
  return written ? shown : refuse_tuning(written.error());
}

int tune_command(const TuneRequest& request) {
  log::set_level(request.job.settings.get(knobs::kLogLevel));
  const auto shape = shape_of(request.job, [](const char* name) { return std::getenv(name); });
  const auto space = space_of(request, shape);
  if (!space) return usage_error("horo tune", space.error());
  if (const auto checked = check_something_to_tune(request, *space, shape); !checked)
    return usage_error("horo tune", checked.error());
  auto runs = JobRuns::make(request);
  if (!runs) return refuse_tuning(runs.error());
  const std::pair<std::string_view, std::string> outputs[] = {
      {"html", request.html}, {"config-out", request.config_out}, {"resume", request.resume}};
  if (const auto checked = check_output_paths(outputs); !checked)
    return refuse_tuning(checked.error());
  if (request.dry_run) return finish_text(plan_of_trials(request, *space, *runs));
  const auto outcome = tune(request, *space, *runs);
  if (!outcome) return refuse_tuning(outcome.error());
  auto summary = summarise(outcome->record);
  if (outcome->keep) summary.keep_command = command_to_keep(*outcome->keep);
  const auto written = write_config(request, *outcome, summary);
  int shown = show_result(outcome->record, summary, {.json = request.json, .html = request.html});
  if (!written) shown = refuse_tuning(written.error());
  if (outcome->signal != 0) return exit_code::kSignalBase + outcome->signal;
  return outcome->failed ? exit_code::kFailure : shown;
}

}  // namespace horo::apps
