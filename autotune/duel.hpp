// SPDX-License-Identifier: Apache-2.0
// Decides whether a challenger is better than the default: turns of both, one after the other, and
// a paired test on the differences. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace horo::autotune {

enum class DuelResult : std::uint8_t { undecided, challenger_wins, default_stays };

/// Pairs after which the challenger may win, and the probability that it does so by chance. The
/// probabilities add up to 5 %, so all looks together let at most 5 % false winners pass.
struct DuelLook {
  int pairs = 0;
  double chance = 0;
};

inline constexpr DuelLook kDuelLooks[] = {{3, 0.005}, {4, 0.01}, {6, 0.015}, {8, 0.02}};
inline constexpr int kMostPairs = 8;
/// After so many pairs that lack a score, the challenger cannot be judged and the default stays.
inline constexpr int kMostFailedPairs = 3;

struct DuelJudgement {
  DuelResult result = DuelResult::undecided;
  int pairs = 0;          ///< With two scores.
  double gain = 0;        ///< Mean difference, in the unit of the scores.
  double gain_error = 0;  ///< Its standard error.
  double chance = 1;      ///< The probability of such a difference if the challenger is no better.
};

/// Whether turn `turn` is the challenger's. The order A B B A cancels a steady drift.
constexpr bool is_challengers_turn(std::size_t turn) {
  return turn % 4 == 1 || turn % 4 == 2;
}

/// The meaning of a difference in turns that did not let the challenger win: "within the noise",
/// "so it is slower", or "which is not certain enough".
std::string_view meaning_of_turns(double gain, double gain_error);

/// `scores`: of the turns so far, larger is better; one that is not finite makes its pair void.
DuelJudgement judge_duel(const std::vector<double>& scores);

}  // namespace horo::autotune
