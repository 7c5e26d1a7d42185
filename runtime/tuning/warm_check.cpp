// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/warm_check.hpp"

#include <algorithm>
#include <cmath>

namespace horo::runtime::tuning {

namespace {

/// Stated errors leave out what changes between samples.
constexpr double kLeastError = 0.01;

double squared_error(const Score& score) {
  const double share = score.score > 0 ? score.standard_error / score.score : 0;
  return std::max(share * share, kLeastError * kLeastError);
}

}  // namespace

WarmCheck::WarmCheck(const KnownResult& known, const Tuning& fallback,
                     std::optional<Score> measured)
    : known_(known), fallback_(fallback), default_(measured) {
  if (!measured || !known.beats_default) to_measure_.push_back(fallback);
  if (known.beats_default) to_measure_.insert(to_measure_.end(), 2, known.tuning);
}

WarmFinding WarmCheck::add(const Score& score) {
  if (to_measure_.front() == fallback_) {
    default_ = score;
  } else {
    winners_.push_back(score);
  }
  to_measure_.erase(to_measure_.begin());
  return judge();
}

double WarmCheck::gain() const {
  if (!default_ || winners_.empty() || !(default_->score > 0)) return 0;
  double sum = 0;
  for (const auto& one : winners_) sum += one.score;
  return sum / static_cast<double>(winners_.size()) / default_->score - 1;
}

double WarmCheck::gain_error() const {
  if (!default_ || winners_.empty()) return 0;
  double squares = 0;
  for (const auto& one : winners_) squares += squared_error(one);
  const auto count = static_cast<double>(winners_.size());
  return (1 + gain()) * std::sqrt(squares / (count * count) + squared_error(*default_));
}

WarmFinding WarmCheck::judge() const {
  if (default_) {
    const double change = default_->score / known_.default_score;
    if (!(change < kMostChange && change > 1 / kMostChange)) return WarmFinding::refuted;
  }
  if (!to_measure_.empty()) return WarmFinding::goes_on;
  if (!known_.beats_default) return WarmFinding::confirmed;
  const bool holds = gain() > 0 && gain() > known_.gain / 2 - 2 * gain_error();
  return holds ? WarmFinding::confirmed : WarmFinding::refuted;
}

}  // namespace horo::runtime::tuning
