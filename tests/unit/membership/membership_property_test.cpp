// SPDX-License-Identifier: Apache-2.0
// Random histories of elastic jobs against properties that hold in each of them.
// HORO_TEST_HISTORIES sets their number, HORO_TEST_SEED the first seed.
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include <catch2/catch.hpp>

#include "tests/unit/membership/membership_world.hpp"

using namespace horo;
using namespace horo::test;

namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoull(text);
}

struct Outcomes {
  std::map<std::string, int> ends;
  std::uint64_t generations = 0;
  std::uint64_t notices = 0;
};

/// The property that did not hold; empty: all did.
std::string play(std::uint64_t seed, Outcomes& outcomes) {
  MembershipWorld world(seed);
  try {
    world.run();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  const auto& state = world.state();
  outcomes.generations += state.generation;
  outcomes.notices += state.notices.sequence;
  const bool runs = state.phase == MembershipPhase::running;
  const int code = runs || !state.verdict.failure ? 0 : state.verdict.failure->exit_code;
  ++outcomes.ends[runs                        ? "runs"
                  : state.verdict.signal != 0 ? "signal"
                                              : fmt::format("ends {}", code)];
  return "";
}

}  // namespace

TEST_CASE("in every history each call is answered, each wait ends, and the state survives") {
  const auto first = number_from("HORO_TEST_SEED", 1);
  const auto count = number_from("HORO_TEST_HISTORIES", 400);
  Outcomes outcomes;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const auto fault = play(seed, outcomes);
    INFO("HORO_TEST_SEED=" << seed);
    CHECK(fault == "");
  }
  if (count > 400) {
    for (const auto& [end, times] : outcomes.ends) std::cout << end << ": " << times << '\n';
    std::cout << outcomes.generations << " generations, " << outcomes.notices << " notices\n";
  }
  // Histories in which nothing happens would prove nothing.
  if (count >= 400) {
    CHECK(outcomes.generations > 2 * count);
    CHECK(outcomes.ends.size() > 3);
  }
}
