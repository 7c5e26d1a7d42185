// SPDX-License-Identifier: Apache-2.0
// Checks in a few samples whether the result of an earlier job holds in this one. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/tensor/tuning.hpp"

namespace horo::runtime::tuning {

/// A measured tuning; scores are bytes per second.
struct Score {
  double score = 0;
  double standard_error = 0;
  std::size_t steps = 0;
  double bytes_per_step = 0;
};

/// If the default is faster or slower than before by a larger factor, the job is another one, or
/// the machine is.
inline constexpr double kMostChange = 1.35;

/// The finding of an earlier job of the same kind.
struct KnownResult {
  Tuning tuning;
  bool beats_default = false;  ///< False: `tuning` is the default, and nothing was better.
  double gain = 0;             ///< Share of the default's score.
  double default_score = 0;    ///< Bytes per second.
  std::size_t samples = 0;     ///< The turns of the search are not counted.
};

enum class WarmFinding : std::uint8_t { goes_on, confirmed, refuted };

/// The default runs, and then a known winner twice: three samples. The default comes first, as in a
/// search, so that readers of the log know it. Where the default was best, one sample of it shows
/// whether the job still runs alike. Thread: owner.
class WarmCheck {
 public:
  /// `measured`: the default's score, if this job has measured it already.
  WarmCheck(const KnownResult& known, const Tuning& fallback, std::optional<Score> measured);

  /// The tuning to measure now.
  const Tuning& next() const { return to_measure_.front(); }

  /// The score of next().
  WarmFinding add(const Score& score);

  /// In this job's samples, as a share of the default's score, with its standard error.
  double gain() const;
  double gain_error() const;

 private:
  WarmFinding judge() const;

  KnownResult known_;
  Tuning fallback_;
  std::vector<Tuning> to_measure_;
  std::vector<Score> winners_;
  std::optional<Score> default_;
};

}  // namespace horo::runtime::tuning
