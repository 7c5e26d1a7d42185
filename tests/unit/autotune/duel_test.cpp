// SPDX-License-Identifier: Apache-2.0
// All draws have fixed seeds.
#include "autotune/duel.hpp"

#include <cmath>

#include <catch2/catch.hpp>

#include "autotune/chance/draws.hpp"

using namespace horo::autotune;

namespace {

/// Plays turns until a decision; the challenger's scores are higher by `gain` of the deviations.
DuelResult play(RandomDraws& draws, double gain, double drift) {
  std::vector<double> scores;
  for (;;) {
    const auto turn = scores.size();
    const double mean = is_challengers_turn(turn) ? gain : 0;
    scores.push_back(mean + drift * static_cast<double>(turn) + draws.normal());
    const auto result = judge_duel(scores).result;
    if (result != DuelResult::undecided) return result;
  }
}

int wins(double gain, double drift, int duels) {
  RandomDraws draws(11);
  int count = 0;
  for (int i = 0; i < duels; ++i)
    count += play(draws, gain, drift) == DuelResult::challenger_wins ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("a challenger that is no better wins at most 5 percent of the duels") {
  const int count = wins(0, 0, 20000);
  CHECK(count <= 1000);
  CHECK(count > 200);  // The looks are not so strict that they never let one pass.
  CHECK(wins(-1, 0, 2000) < 20);
}

TEST_CASE("a challenger that is better by far wins nearly always") {
  CHECK(wins(6, 0, 500) > 495);
  CHECK(wins(3, 0, 500) > 425);
}

TEST_CASE("a steady drift of the machine decides nothing") {
  CHECK(wins(0, 0.5, 4000) <= 200);
  CHECK(wins(0, -0.5, 4000) <= 200);
}

TEST_CASE("the first pairs of a clear win are enough, and their figures are stated") {
  const std::vector<double> scores = {10, 12, 12.1, 10.1, 9.9, 11.9};
  const auto judgement = judge_duel(scores);
  CHECK(judgement.result == DuelResult::challenger_wins);
  CHECK(judgement.pairs == 3);
  CHECK(judgement.gain == Approx(2));
  CHECK(judgement.chance < 1e-6);
  CHECK(judge_duel({10, 12}).result == DuelResult::undecided);
  CHECK(judge_duel({}).result == DuelResult::undecided);
}

TEST_CASE("equal scores let the default stay") {
  CHECK(judge_duel({5, 5, 5, 5, 5, 5}).result == DuelResult::default_stays);
}

TEST_CASE("turns without a score make their pairs void, and three void pairs end the duel") {
  const double failed = std::nan("");
  CHECK(judge_duel({10, failed, 12, 10, 10, 12}).pairs == 2);
  CHECK(judge_duel({10, failed, failed, 10, 10, failed}).result == DuelResult::default_stays);
}
