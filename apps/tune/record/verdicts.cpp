// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/record/verdicts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "apps/tune/record/tune_summary.hpp"

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

std::string nothing_measured(const TuneRecord& record) {
  if (!record.samples.empty()) {
    return fmt::format("none of the {} samples has a score: {}; nothing can be compared",
                       record.samples.size(), record.samples.front().failure);
  }
  switch (record.kind) {
    case TuneSource::trials:
    case TuneSource::simulation:
      return "nothing was measured; the default stays";
    case TuneSource::horovod_log:
      return "the log has no sample: the training ended during the warm-up, or reduced no tensor";
    case TuneSource::horo_log:
      break;
  }
  if (!record.ending)
    return "the log has no sample: the job is in its warm-up, or was killed there, or reduced no "
           "tensor";
  return "the training ended during the warm-up, so nothing was measured and the default stays; "
         "train for more steps, or lower --autotune-warmup-samples and --autotune-steps-per-sample";
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

void add_ending(const TuneRecord& record, const TuneSummary& summary,
                std::vector<std::string>& verdicts) {
  if (record.kind == TuneSource::simulation) {
    verdicts.push_back(prediction_verdict(record, summary));
    return;
  }
  const auto& state = record.ending->state;
  const auto base = base_name(record);
  if (state == kKnownHolds && summary.gain) {
    verdicts.push_back(fmt::format(
        "keep {}, as an earlier job did: a check of {} samples measured that it is faster than {} "
        "by "
        "{}",
        best_setting(record, summary), record.samples.size(), base, gain_text(*summary.gain)));
    return;
  }
  if (state == kChallengerWon && summary.gain) {
    verdicts.push_back(fmt::format(
        "keep {}: it is faster than {} by {}, measured in turns, with a confidence of {}",
        best_setting(record, summary), base, gain_text(*summary.gain),
        confidence_text(summary.gain->chance)));
  } else if (summary.gain && summary.gain->in_turns) {
    verdicts.push_back(
        fmt::format("{} stays: in turns, {} differed by {}, which is within the noise", base,
                    best_setting(record, summary), gain_text(*summary.gain)));
  } else if (state == kEndedEarly) {
    verdicts.push_back(fmt::format(
        "the {} ended before the search did, after {} samples; {} stays, "
        "because no other setting was confirmed in turns",
        record.kind == TuneSource::trials ? "trials" : "training", record.samples.size(), base));
    verdicts.push_back(opinion(record, summary));
  } else {
    verdicts.push_back(fmt::format("{} stays: the search ended with '{}'", base, state));
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
