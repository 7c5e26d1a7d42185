// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/record/verdicts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "apps/tune/record/tune_summary.hpp"
#include "autotune/duel.hpp"
#include "autotune/search.hpp"

namespace horo::apps {

namespace {

/// A score so many deviations above the model's prediction of its setting is called luck.
constexpr double kLucky = 2;

std::string best_setting(const TuneRecord& record, const TuneSummary& summary) {
  return describe_setting(record, summary.settings[*summary.best].values);
}

std::string gain_text(const TunedGain& gain) {
  return fmt::format("{:.1f} % +- {:.1f} %", 100 * gain.gain, 100 * gain.error);
}

/// A confidence of more than this is not written out: figures of so small a chance mean little.
std::string confidence_text(double chance) {
  constexpr double kTiny = 1e-4;
  return chance < kTiny ? "more than 99.99 %" : fmt::format("{:.4g} %", 100 * (1 - chance));
}

/// The first half of a sentence: the thing that ended. The second half says what was missing then.
std::string_view what_ended(const TuneRecord& record) {
  switch (record.early_stop) {
    case EarlyStop::none:
      return record.kind == TuneSource::trials ? "the trials ended" : "the training ended";
    case EarlyStop::program_ended:
      return "the training ended";
    case EarlyStop::failures:
      return "the command failed";
    case EarlyStop::budget:
      return "the budget ended";
    case EarlyStop::trials:
      return "all trials were used";
    case EarlyStop::user:
      return "you stopped the search";
  }
  return "";
}

/// The log says so itself, or horo tune does, which ran the search.
bool has_ended_early(const TuneRecord& record) {
  return record.ending ? record.ending->state == kEndedEarly : record.early_stop != EarlyStop::none;
}

std::string no_sample_in_log(const TuneRecord& record) {
  constexpr std::string_view kSooner =
      "lower --autotune-warmup-samples and --autotune-steps-per-sample";
  const bool by_program =
      record.early_stop == EarlyStop::none || record.early_stop == EarlyStop::program_ended;
  // The notes say why there is no log.
  if (by_program && record.columns.empty()) return "nothing was measured; the default stays";
  if (by_program && record.ending) {
    return fmt::format(
        "the training ended during the warm-up, so nothing was measured and the default stays; "
        "train for more steps, or {}",
        kSooner);
  }
  if (record.early_stop == EarlyStop::none)
    return "the log has no sample: the job is in its warm-up, or was killed there, or reduced no "
           "tensor";
  const auto text =
      fmt::format("{} before anything was measured, so the default stays", what_ended(record));
  if (record.early_stop != EarlyStop::budget) return text;
  return fmt::format("{}; allow more with --budget, or {}", text, kSooner);
}

std::string nothing_measured(const TuneRecord& record) {
  if (!record.samples.empty()) {
    return fmt::format("none of the {} samples has a score: {}; nothing can be compared",
                       record.samples.size(), record.samples.front().failure);
  }
  switch (record.kind) {
    case TuneSource::trials:
      return fmt::format("{} before anything was measured, so the default stays",
                         what_ended(record));
    case TuneSource::simulation:
      return "nothing was predicted; the default stays";
    case TuneSource::horovod_log:
      return "the log has no sample: the training ended during the warm-up, or reduced no tensor";
    case TuneSource::horo_log:
      break;
  }
  return no_sample_in_log(record);
}

/// The name of the setting that others had to beat.
std::string_view base_name(const TuneRecord& record) {
  if (record.kind == TuneSource::horovod_log) return "the setting that was tried first";
  return record.earlier.count > 0 ? "the setting before" : "the default";
}

/// The model's opinion, where no turns were measured.
std::string opinion(const TuneRecord& record, const TuneSummary& summary) {
  const auto than = base_name(record);
  if (summary.best == summary.reference)
    return fmt::format("no setting is expected to be faster than {}", than);
  if (!summary.gain) return "there are too few samples to compare settings";
  return fmt::format("{} is expected to be faster than {} by {}, with a confidence of {}",
                     best_setting(record, summary), than, gain_text(*summary.gain),
                     confidence_text(summary.gain->chance));
}

void add_horovod(const TuneRecord& record, const TuneSummary& summary,
                 std::vector<std::string>& verdicts) {
  if (record.ending) {
    verdicts.push_back(
        fmt::format("Horovod's search has ended; it keeps the highest single score: {}",
                    describe_setting(record, record.ending->values)));
  } else {
    verdicts.emplace_back(
        "the log ends before Horovod's search did: no last line repeats the best");
  }
  verdicts.push_back(opinion(record, summary));
  verdicts.emplace_back(
      "Horovod does not measure its own default, so the gain over that is unknown");
}

/// Predictions have no noise, so there is no confidence to state.
std::string prediction_verdict(const TuneRecord& record, const TuneSummary& summary) {
  if (!summary.keep_best || !summary.gain)
    return "the default stays: no other setting is predicted to be faster";
  return fmt::format(
      "use {}: it is predicted to move {:.1f} % more bytes per second than the default",
      best_setting(record, summary), 100 * summary.gain->gain);
}

void add_early_end(const TuneRecord& record, const TuneSummary& summary,
                   std::vector<std::string>& verdicts) {
  verdicts.push_back(fmt::format(
      "{} before the search was over, after {} samples; {} stays, because no other setting was "
      "confirmed in turns",
      what_ended(record), record.samples.size(), base_name(record)));
  if (summary.gain && summary.gain->in_turns) {
    verdicts.push_back(fmt::format("in the turns until then, {} differed from {} by {}",
                                   best_setting(record, summary), base_name(record),
                                   gain_text(*summary.gain)));
  } else {
    verdicts.push_back(opinion(record, summary));
  }
}

/// The setting of a search whose winner is to be kept.
std::string kept_verdict(const TuneRecord& record, const TuneSummary& summary) {
  const auto base = base_name(record);
  auto kept = describe_setting(record, record.ending->values);
  if (!summary.gain) {
    // Where no sample differs from another, none is of this setting.
    if (kept.empty()) kept = "the setting of the last line";
    return fmt::format("keep {}: the search ended with '{}', but its turns are not in the log",
                       kept, record.ending->state);
  }
  if (record.ending->state == kKnownHolds) {
    return fmt::format(
        "keep {}, as an earlier job did: a check of {} samples measured that it is faster than {} "
        "by {}",
        kept, record.samples.size(), base, gain_text(*summary.gain));
  }
  return fmt::format(
      "keep {}: it is faster than {} by {}, measured in turns, with a confidence of {}", kept, base,
      gain_text(*summary.gain), confidence_text(summary.gain->chance));
}

/// The result of turns that a setting has not won.
std::string lost_turns(const TuneRecord& record, const TunedGain& gain) {
  const auto failed =
      std::find_if(record.samples.begin(), record.samples.end(), [](const TriedSample& sample) {
        return sample.stage == kDuelStage && !sample.failure.empty();
      });
  // Without a whole pair of turns there is no difference.
  if (gain.gain == 0 && gain.error == 0 && failed != record.samples.end())
    return fmt::format("could not be compared: {}", failed->failure);
  return fmt::format("differed by {}, {}", gain_text(gain),
                     autotune::meaning_of_turns(gain.gain, gain.error));
}

/// Why a search that came to its end has no winner.
std::string stays_because(const TuneRecord& record, const TuneSummary& summary) {
  using autotune::SearchEnding;
  const auto& state = record.ending->state;
  if (summary.gain && summary.gain->in_turns) {
    return fmt::format("in turns, {} {}", best_setting(record, summary),
                       lost_turns(record, *summary.gain));
  }
  if (state == autotune::name(SearchEnding::default_is_best))
    return "no other setting is expected to be faster";
  if (state == autotune::name(SearchEnding::budget_too_short)) {
    return fmt::format(
        "too few samples were allowed to try anything else; raise {}",
        record.kind == TuneSource::trials ? "--trials" : "--autotune-bayes-opt-max-samples");
  }
  if (state == autotune::name(SearchEnding::nothing_to_tune))
    return "every value that could change is set";
  return fmt::format("the search ended with '{}'", state);
}

void add_ending(const TuneRecord& record, const TuneSummary& summary,
                std::vector<std::string>& verdicts) {
  const auto& state = record.ending->state;
  if (record.kind == TuneSource::simulation) {
    verdicts.push_back(prediction_verdict(record, summary));
  } else if (state == kChallengerWon || state == kKnownHolds) {
    verdicts.push_back(kept_verdict(record, summary));
  } else {
    verdicts.push_back(
        fmt::format("{} stays: {}", base_name(record), stays_because(record, summary)));
  }
}

/// The highest single score is the luckiest one, and tempts to expect as much again.
void add_luck(const TuneRecord& record, const TuneSummary& summary,
              std::vector<std::string>& verdicts) {
  const auto luckiest = std::max_element(
      record.samples.begin(), record.samples.end(), [](const auto& a, const auto& b) {
        return (a.failure.empty() ? a.score : 0) < (b.failure.empty() ? b.score : 0);
      });
  const auto figures =
      std::find_if(summary.settings.begin(), summary.settings.end(),
                   [&](const auto& one) { return one.values == luckiest->values; });
  if (figures->predicted <= 0 ||
      luckiest->score < figures->predicted * (1 + kLucky * summary.noise))
    return;
  verdicts.push_back(fmt::format(
      "the highest single score, {:.4g} {} in {} {}, is probably luck: all samples together let "
      "expect {:.4g} +- {:.2g} there",
      luckiest->score, record.score_unit, record.kind == TuneSource::trials ? "trial" : "line",
      luckiest->line, figures->predicted, figures->deviation));
}

}  // namespace

std::vector<std::string> verdicts_of(const TuneRecord& record, const TuneSummary& summary) {
  if (!summary.best) return {nothing_measured(record)};
  std::vector<std::string> verdicts;
  if (record.samples.size() == 1) {
    verdicts.push_back(fmt::format("one sample was measured: there is nothing to compare; {} stays",
                                   base_name(record)));
  } else if (record.kind == TuneSource::horovod_log) {
    add_horovod(record, summary, verdicts);
  } else if (has_ended_early(record)) {
    add_early_end(record, summary, verdicts);
  } else if (record.ending) {
    add_ending(record, summary, verdicts);
  } else {
    verdicts.emplace_back("the log has no last line: the job still runs, or was killed");
    verdicts.push_back(opinion(record, summary));
  }
  add_luck(record, summary, verdicts);
  return verdicts;
}

}  // namespace horo::apps
