// SPDX-License-Identifier: Apache-2.0
// Everything that a search has measured, as a value: from a log file, or from trials.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace horo::apps {

enum class TuneSource : std::uint8_t { horo_log, horovod_log, trials, simulation };

/// The cause that ended a search, or the tuned command, before the search came to its end. A log
/// alone says only that the training ended.
enum class EarlyStop : std::uint8_t {
  none,           ///< The search came to its end, or only its log is known.
  program_ended,  ///< The program ended by itself.
  failures,       ///< The command failed, or too many trials in a row did.
  budget,
  trials,  ///< All trials were used.
  user,
};

/// A value that the settings of a search consist of.
struct TunedColumn {
  std::string name;  ///< "fusion threshold".
  std::string unit;  ///< "MiB"; empty: none.
  bool is_number = true;
  /// Distances between numbers are those of the logarithm of number + offset. 0: of the number.
  double offset = 0;
};

/// One measurement.
struct TriedSample {
  std::size_t line = 0;             ///< In the log; of trials the number of the trial.
  std::vector<std::string> values;  ///< One per column.
  double score = 0;                 ///< Larger is better. Not above 0: nothing was measured.
  double standard_error = 0;        ///< 0: unknown.
  std::size_t steps = 0;            ///< 0: unknown.
  std::string stage;                ///< "first points", "model", "duel"; empty: unknown.
  std::string failure{};            ///< Why nothing was measured.
};

/// How a search ended, as its log says.
struct RecordedEnding {
  std::string state;                ///< "challenger won"; empty: the log does not say.
  std::vector<std::string> values;  ///< The setting to keep.
  std::optional<double> gain_percent{};
  std::optional<double> gain_error_percent{};
  std::optional<double> chance_percent{};
};

/// The log had these searches before the one that its record holds.
struct EarlierSearches {
  std::size_t count = 0;
  std::vector<std::string> fallback;  ///< The default, which the first search had to beat.
  std::vector<std::string> base;      ///< The last search had to beat it.
};

struct TuneRecord {
  std::string source;  ///< The file, or the command.
  TuneSource kind = TuneSource::horo_log;
  std::string score_unit = "MB/s";
  std::vector<TunedColumn> columns;
  /// They are those of the last search: the throughput of two searches is not comparable, because a
  /// lasting change of it is why another search began.
  std::vector<TriedSample> samples;
  std::optional<RecordedEnding> ending;
  EarlierSearches earlier{};
  EarlyStop early_stop = EarlyStop::none;
  std::vector<std::string> warnings;
  std::vector<std::string> notes;  ///< Why trials ended, and other facts that are no measurements.
};

/// The words of the state column that end a search: "challenger won", "ended early" and others.
bool is_ending_state(const std::string& state);

/// The setting with which the job goes on, according to its search. Nothing: the default stays.
std::optional<std::vector<std::string>> setting_to_keep(const TuneRecord& record);

inline constexpr const char* kChallengerWon = "challenger won";
/// A setting from an earlier job has passed its check.
inline constexpr const char* kKnownHolds = "known holds";
inline constexpr const char* kEndedEarly = "ended early";
inline constexpr const char* kEndedInWarmUp = "ended in warm-up";  ///< It is read as kEndedEarly.
inline constexpr const char* kDuelStage = "duel";
inline constexpr const char* kCheckStage = "check";

}  // namespace horo::apps
