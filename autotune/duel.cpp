// SPDX-License-Identifier: Apache-2.0
#include "autotune/duel.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "autotune/chance/probability.hpp"

namespace horo::autotune {

namespace {

/// Mean, error and chance of the differences, without a decision.
DuelJudgement judge_differences(const std::vector<double>& differences) {
  const auto count = static_cast<double>(differences.size());
  DuelJudgement judgement{.pairs = static_cast<int>(differences.size())};
  if (differences.empty()) return judgement;
  for (const double one : differences) judgement.gain += one / count;
  if (differences.size() < 2) return judgement;
  double squares = 0;
  for (const double one : differences) squares += (one - judgement.gain) * (one - judgement.gain);
  judgement.gain_error = std::sqrt(squares / (count - 1) / count);
  if (judgement.gain_error > 0) {
    judgement.chance = student_tail(judgement.gain / judgement.gain_error, count - 1);
  } else {
    judgement.chance = judgement.gain > 0 ? 0 : 1;
  }
  return judgement;
}

}  // namespace

std::string_view meaning_of_turns(double gain, double gain_error) {
  constexpr double kBeyondNoise = 2;  // In standard errors.
  if (gain < -kBeyondNoise * gain_error) return "so it is slower";
  return gain > kBeyondNoise * gain_error ? "which is not certain enough" : "within the noise";
}

DuelJudgement judge_duel(const std::vector<double>& scores) {
  std::vector<double> differences;
  int failed = 0;
  for (std::size_t turn = 0; turn + 1 < scores.size(); turn += 2) {
    const double first = scores[turn];
    const double second = scores[turn + 1];
    if (std::isfinite(first) && std::isfinite(second)) {
      differences.push_back(is_challengers_turn(turn) ? first - second : second - first);
    } else {
      ++failed;
    }
  }
  auto judgement = judge_differences(differences);
  const auto* const look =
      std::find_if(std::begin(kDuelLooks), std::end(kDuelLooks),
                   [&](const DuelLook& one) { return one.pairs == judgement.pairs; });
  // In the middle of a pair the last decision, to go on, still holds.
  const bool is_look = look != std::end(kDuelLooks) && scores.size() % 2 == 0;
  if (is_look && judgement.chance < look->chance) {
    judgement.result = DuelResult::challenger_wins;
  } else if (judgement.pairs >= kMostPairs || failed >= kMostFailedPairs ||
             (is_look && judgement.gain <= 0)) {
    judgement.result = DuelResult::default_stays;
  }
  return judgement;
}

}  // namespace horo::autotune
