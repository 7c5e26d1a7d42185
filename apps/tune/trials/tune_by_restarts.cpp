// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <utility>

#include "apps/common/replace_file.hpp"
#include "apps/tune/trials/online_state.hpp"
#include "apps/tune/trials/tune_runs.hpp"
#include "base/knobs/knobs.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"

namespace horo::apps {

namespace {

/// The score of a wall time is the number of runs in an hour, so that more is better.
constexpr double kHour = 3600;

constexpr int kWarmupSamples = 1;

/// Has the runtime measure one sample of the setting that it starts with.
std::vector<std::string> measuring_flags(const TuneRequest& request, Objective objective) {
  if (objective == Objective::wall_time) return {};
  std::vector<std::string> flags{"--autotune", "--autotune-bayes-opt-max-samples=1"};
  if (!request.job.settings.is_set(knobs::kAutotuneWarmupSamples.text.key))
    flags.push_back(fmt::format("--autotune-warmup-samples={}", kWarmupSamples));
  return flags;
}

bool has_sample(const TuneRecord* record) {
  return record != nullptr && !record->samples.empty();
}

std::string score_text(double score, Objective objective) {
  if (objective == Objective::wall_time) return duration_text(kHour / score);
  return fmt::format("{:.4g} MB/s", score);
}

std::string best_text(const TrialDriver& driver, const TrialSpace& space, Objective objective) {
  const auto best = driver.best_so_far();
  const double fallback = driver.default_score();
  if (!best || fallback <= 0) return "nothing is measured yet";
  if (best->setting == space.space().fallback())
    return fmt::format("best so far: the default, {}", score_text(best->score, objective));
  return fmt::format("best so far: {}, {} ({:+.1f} %)", space.describe(best->setting),
                     score_text(best->score, objective), 100 * (best->score / fallback - 1));
}

/// All trials of one search. Thread: owner.
class Restarts {
 public:
  Restarts(const TuneRequest& request, const TrialSpace& space, const TrialRules& rules,
           TrialDriver driver, JobRuns& runs, Objective objective)
      : request_(request),
        space_(space),
        rules_(rules),
        driver_(std::move(driver)),
        runs_(runs),
        objective_(objective) {}

  Result<TuneOutcome> run() {
    while (driver_.next().stop == TrialStop::none) HORO_TRY_STATUS(run_one());
    return outcome();
  }

 private:
  Status run_one() {
    const auto trial = driver_.next();
    const auto what =
        fmt::format("trial {}, {}: {}", trial.number, trial.stage, space_.describe(trial.setting));
    const auto best = best_text(driver_, space_, objective_);
    const auto left = driver_.most_seconds_left();
    HORO_TRY(const auto run,
             runs_.run(space_.words_of(trial.setting), measuring_flags(request_, objective_),
                       trial.limit_seconds, [&](const TuneRecord* record, double seconds) {
                         runs_.progress().now(
                             fmt::format("{}{}; {}", time_left_text(left, seconds), what, best));
                         return has_sample(record) && !request_.whole_runs &&
                                objective_ != Objective::wall_time;
                       }));
    const auto result = judge_run(run, objective_);
    if (objective_ == Objective::undecided && result.ending == TrialEnding::measured)
      objective_ = run.log && has_sample(&*run.log) ? Objective::throughput : Objective::wall_time;
    driver_.finished(result);
    signal_ = run.end.signal;
    seconds_ += run.end.seconds;
    if (result.ending != TrialEnding::interrupted) tell(what, result);
    save();
    return {};
  }

  void tell(const std::string& what, const TrialResult& result) {
    const auto how = result.ending == TrialEnding::measured
                         ? score_text(result.score, objective_)
                         : fmt::format("failed: {}", result.failure);
    runs_.progress().done(fmt::format("{}: {} in {}", what, how, duration_text(result.seconds)));
  }

  /// A search that cannot be saved has a result nevertheless.
  void save() const {
    if (request_.resume.empty()) return;
    const auto saved = replace_file(request_.resume, state_text({.command = search_words(request_),
                                                                 .objective = objective_,
                                                                 .state = driver_.state()},
                                                                space_));
    if (!saved) log::warn("tune", "the search is not saved: {}", printable(saved.error().message));
  }

  Result<TuneOutcome> outcome() {
    const auto stop = driver_.next().stop;
    // The last question may have ended the search.
    save();
    TuneOutcome outcome{.record = record_of_trials(driver_, space_, objective_),
                        .keep = std::nullopt,
                        .settled = stop == TrialStop::settled,
                        .failed = stop == TrialStop::failures,
                        .signal = stop == TrialStop::interrupted ? signal_ : 0,
                        .seconds = seconds_};
    outcome.record.source = fmt::format("{}", fmt::join(request_.job.options.command, " "));
    outcome.record.early_stop = early_stop_of(stop);
    if (const auto why = stop_text(driver_, stop, rules_); !why.empty())
      outcome.record.notes.push_back(why);
    if (outcome.failed) {
      runs_.progress().done(fmt::format("{}; the last lines of the command:\n{}",
                                        stop_text(driver_, stop, rules_), runs_.last_output()));
    }
    if (!outcome.settled && !request_.resume.empty()) {
      outcome.record.notes.push_back(
          fmt::format("the same command with --resume {} continues the search", request_.resume));
    }
    const auto result = driver_.outcome();
    if (result.ending == autotune::SearchEnding::challenger_won)
      outcome.keep = space_.words_of(result.setting);
    return outcome;
  }

  const TuneRequest& request_;
  const TrialSpace& space_;
  const TrialRules rules_;
  TrialDriver driver_;
  JobRuns& runs_;
  Objective objective_;
  int signal_ = 0;
  double seconds_ = 0;
};

/// The search in the file of --resume; a new one if there is no such file.
Result<SavedSearch> search_to_resume(const TuneRequest& request, const TrialSpace& space,
                                     JobRuns& runs) {
  SavedSearch fresh;
  if (request.wall_time) fresh.objective = Objective::wall_time;
  std::error_code error;
  if (request.resume.empty() || !std::filesystem::exists(request.resume, error)) return fresh;
  HORO_TRY(const auto document, read_document(request.resume));
  if (is_online_search(document)) {
    // The search online came first, and the program has ended too soon for it.
    if (request.mode == TrialMode::automatic) return fresh;
    return document.wrong(
        "the state is of a search online, which restarts cannot continue; leave out --restart and "
        "what else asks for restarts, or name another file with --resume");
  }
  HORO_TRY(auto search, state_of_document(document, space, search_words(request)));
  if (request.wall_time && search.objective == Objective::throughput) {
    return fail(Errc::invalid_argument,
                "the trials in '{}' have bytes per second as their score, which --wall-time cannot "
                "continue; name another file with --resume",
                request.resume);
  }
  runs.progress().done(
      fmt::format("{} trials are known from '{}'", search.state.trials.size(), request.resume));
  return search;
}

TriedSample sample_of(const DoneTrial& trial, std::size_t number, const TrialSpace& space) {
  const bool measured = trial.result.ending == TrialEnding::measured;
  return {.line = number,
          .values = space.shown(trial.setting),
          .score = measured ? trial.result.score : 0,
          .standard_error = trial.result.standard_error,
          .steps = trial.result.steps,
          .stage = trial.stage,
          .failure = measured ? std::string() : trial.result.failure};
}

}  // namespace

TrialResult judge_run(const JobRun& run, Objective objective) {
  TrialResult result{.seconds = run.end.seconds};
  const auto* log = run.log ? &*run.log : nullptr;
  const bool sampled =
      objective != Objective::wall_time && has_sample(log) && log->samples.front().failure.empty();
  if (run.end.signal != 0) {
    result.ending = TrialEnding::interrupted;
  } else if (run.end.timed_out) {
    result.ending = TrialEnding::timed_out;
    result.failure = run.describe_failure();
  } else if (run.failed()) {
    result.ending = TrialEnding::failed;
    result.failure = run.describe_failure();
  } else if (sampled) {
    result.score = log->samples.front().score;
    result.standard_error = log->samples.front().standard_error;
    result.steps = log->samples.front().steps;
  } else if (objective == Objective::throughput) {
    result.ending = TrialEnding::failed;
    result.failure = "the command ended before a sample was measured";
  } else {
    result.score = kHour / std::max(run.end.seconds, 1e-3);
  }
  return result;
}

TuneRecord record_of_trials(const TrialDriver& driver, const TrialSpace& space,
                            Objective objective) {
  TuneRecord record{.source = "",
                    .kind = TuneSource::trials,
                    .score_unit = objective == Objective::wall_time ? "runs/h" : "MB/s",
                    .columns = space.columns()};
  for (const auto& trial : driver.state().trials)
    record.samples.push_back(sample_of(trial, record.samples.size() + 1, space));
  const auto outcome = driver.outcome();
  const bool ended = outcome.ending != autotune::SearchEnding::searching;
  record.ending = RecordedEnding{
      .state = ended ? std::string(autotune::name(outcome.ending)) : std::string(kEndedEarly),
      .values = space.shown(outcome.setting)};
  if (ended && outcome.turns > 0) {
    record.ending->gain_percent = 100 * outcome.gain;
    record.ending->gain_error_percent = 100 * outcome.gain_error;
    record.ending->chance_percent = 100 * outcome.chance;
  }
  return record;
}

EarlyStop early_stop_of(TrialStop stop) {
  switch (stop) {
    case TrialStop::none:
    case TrialStop::settled:
      break;
    case TrialStop::out_of_time:
      return EarlyStop::budget;
    case TrialStop::out_of_trials:
      return EarlyStop::trials;
    case TrialStop::failures:
      return EarlyStop::failures;
    case TrialStop::interrupted:
      return EarlyStop::user;
  }
  return EarlyStop::none;
}

std::string stop_text(const TrialDriver& driver, TrialStop stop, const TrialRules& rules) {
  const auto count = driver.state().trials.size();
  switch (stop) {
    case TrialStop::none:
    case TrialStop::settled:
      return {};
    case TrialStop::out_of_trials:
      return fmt::format(
          "all {} trials were used before the search ended; allow more with --trials", count);
    case TrialStop::failures:
      return fmt::format("stopped after {} failures in a row: {}", rules.most_failures,
                         driver.state().trials.back().result.failure);
    case TrialStop::interrupted:
      return "you stopped the search";
    case TrialStop::out_of_time:
      break;
  }
  if (count == 0) {
    return fmt::format("the budget of {} is too short for one trial; allow more with --budget",
                       duration_text(rules.most_seconds));
  }
  const double each = driver.seconds_per_trial();
  constexpr double kTrialsToConfirm = 12;  // At least, to search and to confirm the best in turns.
  const auto trials = std::max(kTrialsToConfirm, 2.0 * static_cast<double>(count));
  return fmt::format(
      "the budget of {} ended the search after {} trials of {} each; about {:.0f} take --budget "
      "{:.0f}s",
      duration_text(rules.most_seconds), count, duration_text(each), trials, trials * each + 1);
}

Result<TuneOutcome> tune_by_restarts(const TuneRequest& request, const TrialSpace& space,
                                     double seconds, JobRuns& runs) {
  HORO_TRY(auto saved, search_to_resume(request, space, runs));
  const TrialRules rules{
      .most_seconds = seconds, .most_trials = request.trials, .most_failures = request.failures};
  HORO_TRY(auto driver, TrialDriver::make(space.space(), rules, std::move(saved.state)));
  return Restarts(request, space, rules, std::move(driver), runs, saved.objective).run();
}

}  // namespace horo::apps
