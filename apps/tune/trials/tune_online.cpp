// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "apps/tune/record/tune_summary.hpp"
#include "apps/tune/trials/kept_setting.hpp"
#include "apps/tune/trials/online_state.hpp"
#include "apps/tune/trials/tune_runs.hpp"

namespace horo::apps {

namespace {

bool has_settled(const TuneRecord* record) {
  if (record == nullptr) return false;
  return record->earlier.count > 0 || (record->ending && record->ending->state != kEndedEarly);
}

/// "at most 3 min 2 s left, 7 samples, model: fusion threshold 4 MiB, ...; best 412 MB/s".
std::string online_progress(const TuneRecord* record, double budget, double passed) {
  auto text = time_left_text(budget, passed);
  if (record == nullptr || record->samples.empty()) {
    text += "the training starts, or is in the warm-up of the autotuner";
  } else {
    const auto best = std::max_element(
        record->samples.begin(), record->samples.end(),
        [](const TriedSample& a, const TriedSample& b) { return a.score < b.score; });
    const auto& last = record->samples.back();
    text += fmt::format("{} samples, {}: {}; best {:.4g} {}", record->samples.size(), last.stage,
                        describe_setting(*record, last.values), best->score, record->score_unit);
  }
  return text;
}

void note_end(const JobRun& run, const TuneRequest& request, JobRuns& runs, TuneOutcome& outcome) {
  auto& notes = outcome.record.notes;
  switch (outcome.record.early_stop) {
    case EarlyStop::failures:
      notes.push_back(fmt::format("the command failed: {}", run.describe_failure()));
      runs.progress().done(fmt::format("the command failed: {}; its last lines:\n{}",
                                       run.describe_failure(), runs.last_output()));
      return;
    case EarlyStop::budget:
      notes.push_back(fmt::format("the budget was {}; allow more with --budget",
                                  duration_text(request.budget_seconds)));
      break;
    case EarlyStop::user:
      notes.emplace_back("you stopped the search");
      return;
    case EarlyStop::none:
    case EarlyStop::program_ended:
    case EarlyStop::trials:
      break;
  }
  if (!run.log) {
    notes.push_back(fmt::format(
        "the job wrote no log to '{}': it has one rank, does not use Horo's runtime, or its rank 0 "
        "runs on another host; then name a file in a shared folder with --autotune-log-file",
        runs.log()));
  }
}

}  // namespace

EarlyStop early_stop_of(const JobRun& run) {
  if (run.end.signal != 0) return EarlyStop::user;
  if (run.end.timed_out) return EarlyStop::budget;
  return run.failed() ? EarlyStop::failures : EarlyStop::program_ended;
}

Result<TuneOutcome> tune_online(const TuneRequest& request, JobRuns& runs) {
  HORO_TRY(auto state, OnlineState::open(request, runs.log()));
  auto flags = state.flags();
  flags.emplace_back("--autotune");
  HORO_TRY(
      const auto run,
      runs.run({}, flags, request.budget_seconds, [&](const TuneRecord* record, double seconds) {
        runs.progress().now(online_progress(record, request.budget_seconds, seconds));
        state.save();
        return has_settled(record) && !request.whole_runs;
      }));
  state.save();
  TuneOutcome outcome{.record = run.log.value_or(TuneRecord{}),
                      .keep = std::nullopt,
                      .settled = has_settled(run.log ? &*run.log : nullptr),
                      .failed = run.failed() && run.end.signal == 0,
                      .signal = run.end.signal,
                      .seconds = run.end.seconds};
  outcome.record.source = fmt::format("{}", fmt::join(request.job.options.command, " "));
  outcome.record.early_stop =
      outcome.settled && !outcome.failed ? EarlyStop::none : early_stop_of(run);
  note_end(run, request, runs, outcome);
  if (!outcome.settled && state.has_samples()) {
    outcome.record.notes.push_back(
        fmt::format("the same command with --resume {} continues the search", request.resume));
  }
  if (const auto keep = setting_to_keep(outcome.record))
    outcome.keep = words_of_log(outcome.record, *keep);
  return outcome;
}

}  // namespace horo::apps
