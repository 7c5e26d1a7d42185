// SPDX-License-Identifier: Apache-2.0
// The tunings among which a job searches.
#pragma once

#include <optional>

#include "autotune/search_space.hpp"
#include "base/result.hpp"
#include "runtime/tensor/tuning.hpp"

namespace horo::runtime::tuning {

/// The values of a tuning that may change: those that the user has not set.
struct TunableValues {
  bool fusion_threshold = true;
  bool cycle_time = true;
  bool wake_delay = true;
  bool small_message = false;  ///< Without effect on one host.
};

/// Converts between tunings and settings of a search. Thread: immutable.
class TuningSpace {
 public:
  /// `start` is the tuning without a search. A value of it outside the searched range stays as it
  /// is.
  static Result<TuningSpace> make(const Tuning& start, const TunableValues& tunable);

  const autotune::SearchSpace& space() const { return space_; }

  Tuning tuning_of(const autotune::Setting& setting) const;

  /// Nothing if a value is outside the searched range, or is not `start`'s where it may not change.
  std::optional<autotune::Setting> setting_of(const Tuning& tuning) const;

  const Tuning& start() const { return start_; }

 private:
  TuningSpace(const Tuning& start, autotune::SearchSpace space)
      : start_(start), space_(std::move(space)) {}

  Tuning start_;
  autotune::SearchSpace space_;
};

/// "fusion.threshold=64MiB cycle.time=0ms wake.delay=50us small.message=64KiB"; the last value only
/// where it is not the usual one.
std::string describe(const Tuning& tuning);

}  // namespace horo::runtime::tuning
