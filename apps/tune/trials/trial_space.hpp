// SPDX-License-Identifier: Apache-2.0
// The settings among which trials search: Horo's own knobs, variables of other libraries, and
// arguments of mpirun; and how a setting is given to a command. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/tune/record/tune_record.hpp"
#include "apps/tune/trials/job_shape.hpp"
#include "autotune/search_space.hpp"
#include "base/knobs/settings.hpp"

namespace horo::apps {

/// The place where a command reads a value.
enum class ValueTarget : std::uint8_t { knob, variable, mpi_args };

/// A category of a variable that means: the variable is not set.
inline constexpr const char* kUnsetWord = "(unset)";

struct TrialDimension {
  autotune::Dimension dimension;
  ValueTarget target = ValueTarget::knob;
  double shown_factor = 1;  ///< From a number of the dimension to the number that is shown.
  std::string unit{};       ///< The unit of the number that is shown.
};

/// How `horo run` gets a setting.
struct SettingWords {
  std::vector<std::pair<std::string, std::string>> knobs;  ///< Keys, and values as text.
  Environment variables;
  std::vector<std::string> unset;  ///< Variables that must not be set.
  std::string mpi_args;

  /// The words to type in front of a command, and behind `horo run`: "NCCL_ALGO=Ring",
  /// "--cycle-time=1ms".
  std::vector<std::string> variable_words() const;
  std::vector<std::string> flag_words() const;
};

/// Thread: immutable.
class TrialSpace {
 public:
  /// Horo's own dimensions come first. Fails: invalid_argument (a dimension that cannot be
  /// searched).
  static Result<TrialSpace> make(std::vector<TrialDimension> dimensions);

  const autotune::SearchSpace& space() const { return space_; }

  SettingWords words_of(const autotune::Setting& setting) const;

  std::vector<TunedColumn> columns() const;
  std::vector<std::string> shown(const autotune::Setting& setting) const;

  /// "fusion.threshold=4MiB NCCL_ALGO=Ring"
  std::string describe(const autotune::Setting& setting) const;

 private:
  TrialSpace(std::vector<TrialDimension> dimensions, autotune::SearchSpace space)
      : dimensions_(std::move(dimensions)), space_(std::move(space)) {}

  std::vector<TrialDimension> dimensions_;
  autotune::SearchSpace space_;
};

/// The knobs of Horo that restarts may tune: those that are not set. The wake delay is not among
/// them: while it is free, the runtime measures and writes its log. The small message is, where
/// several hosts are certain.
Result<std::vector<TrialDimension>> knob_dimensions(const Settings& settings,
                                                    JobShape shape = JobShape::unknown);

}  // namespace horo::apps
