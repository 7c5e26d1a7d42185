// SPDX-License-Identifier: Apache-2.0
// Evaluates the measurements of a search: the mean of each setting, the best so far, the setting to
// keep and the confidence in it. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/tune/record/response_surface.hpp"
#include "apps/tune/record/tune_record.hpp"

namespace horo::apps {

/// All measurements of one setting.
struct SettingFigures {
  std::vector<std::string> values;
  std::size_t first_line = 0;
  std::size_t samples = 0;   ///< With a score.
  std::size_t failures = 0;  ///< Samples without one.
  double score = 0;          ///< Their mean.
  double error = 0;          ///< Its standard error; 0: unknown.
  double predicted = 0;      ///< By the model of all samples; 0: there is no model.
  double deviation = 0;      ///< The deviation of the prediction.
};

/// How much better one setting is than another.
struct TunedGain {
  double gain = 0;        ///< As a share.
  double error = 0;       ///< Its standard error.
  double chance = 1;      ///< The probability of such a gain if there were none.
  bool in_turns = false;  ///< Measured in turns; otherwise the model's opinion.
};

struct TuneSummary {
  std::vector<SettingFigures> settings;  ///< Best first; settings that failed are last.
  /// After each sample the largest mean of a setting until then. It falls where a lucky setting is
  /// measured again.
  std::vector<double> best_so_far;
  /// The default; in a log with several searches the setting that was in force before the last one;
  /// in a log of Horovod the setting that was tried first. Index in `settings`.
  std::optional<std::size_t> reference;
  std::optional<std::size_t> best;  ///< The setting that seems best.
  bool keep_best = false;           ///< It is worth using; otherwise the reference stays.
  std::optional<TunedGain> gain;    ///< The gain of `best` over `reference`.
  double noise = 0;                 ///< Deviation of a single sample, as a share; 0: unknown.
  std::vector<std::string> verdicts;
  std::optional<ResponseSurface> surface;
  std::string keep_command;  ///< How to run a job with the setting to keep; empty: the default.
  std::string config_file;   ///< The file with that setting; empty: none was written.
};

TuneSummary summarise(const TuneRecord& record);

/// "fusion threshold 4 MiB, cycle time 0.5 ms": the values of a setting, without the columns in
/// which all samples are equal.
std::string describe_setting(const TuneRecord& record, const std::vector<std::string>& values);

/// Columns in which samples differ.
std::vector<std::size_t> varied_columns(const TuneRecord& record);

}  // namespace horo::apps
