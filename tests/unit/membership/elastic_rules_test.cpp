// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/elastic_rules.hpp"

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

std::string refusal(const ElasticRules& rules) {
  const auto status = check(rules);
  return status ? "" : status.error().message;
}

}  // namespace

TEST_CASE("rules that fit together are accepted") {
  CHECK(refusal({}).empty());
  CHECK(refusal({.min_np = 2, .max_np = 4, .np = 3, .spares = 1}).empty());
  CHECK(refusal({.cooldown = CooldownRange{1s, 1h}}).empty());
}

TEST_CASE("a rule that cannot hold is refused by its flag and value") {
  CHECK(refusal({.min_np = 4, .max_np = 2, .np = 4}) ==
        "--max-np 2 is less than --min-np 4; raise the one or lower the other");
  CHECK(refusal({.min_np = 0}).find("--min-np 0") == 0);
  CHECK(refusal({.min_np = 2, .max_np = 4, .np = 5}).find("-np 5") == 0);
  CHECK(refusal({.min_np = 2, .max_np = 4, .np = 1}).find("-np 1") == 0);
  CHECK(refusal({.spares = 1}).find("--spares 1 needs --max-np") == 0);
  CHECK(refusal({.max_np = 2, .spares = -1}).find("--spares -1") == 0);
  CHECK(refusal({.slot_restarts = -1}).find("--slot-restarts -1") == 0);
  CHECK(refusal({.reset_limit = -1}).find("--reset-limit -1") == 0);
}

TEST_CASE("a cooldown range outside 1 to 3600 seconds, or in the wrong order, is refused at once") {
  for (const auto& range :
       {CooldownRange{0s, 10s}, CooldownRange{10s, 3601s}, CooldownRange{9s, 8s}})
    CHECK(refusal({.cooldown = range}).find("--blacklist-cooldown-range") == 0);
}
