// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/assignments.hpp"

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

using Stage = Assignments::Stage;

/// An agent whose ranks of assignment 1 are gone, and which waits for another one.
Assignments waiting() {
  Assignments assignments;
  REQUIRE(assignments.prepare(Epoch{1}));
  REQUIRE(assignments.begin(Epoch{1}, 10s));
  assignments.finish();
  REQUIRE(assignments.stage() == Stage::waiting);
  return assignments;
}

}  // namespace

TEST_CASE("an agent that waits takes a further assignment, with and without Prepare") {
  auto assignments = waiting();
  SECTION("with") {
    CHECK(assignments.prepare(Epoch{2}));
    CHECK(assignments.stage() == Stage::prepared);
    CHECK(assignments.begin(Epoch{2}, 10s));
  }
  SECTION("without") {
    CHECK(assignments.begin(Epoch{2}, 10s));
  }
  CHECK(assignments.stage() == Stage::begun);
  CHECK(assignments.epoch() == Epoch{2});
}

TEST_CASE("an assignment with the epoch of an earlier one is refused") {
  auto assignments = waiting();
  for (const auto epoch : {Epoch{0}, Epoch{1}}) {
    CHECK(assignments.prepare(epoch).error().code == Errc::protocol);
    CHECK(assignments.begin(epoch, 10s).error().code == Errc::protocol);
  }
  CHECK(assignments.stage() == Stage::waiting);
}

TEST_CASE("an assignment while another one goes on is refused") {
  Assignments assignments;
  REQUIRE(assignments.prepare(Epoch{1}));
  CHECK_FALSE(assignments.prepare(Epoch{2}));
  CHECK_FALSE(assignments.begin(Epoch{2}, 10s));
  REQUIRE(assignments.begin(Epoch{1}, 10s));
  CHECK_FALSE(assignments.begin(Epoch{1}, 10s));
  CHECK_FALSE(assignments.prepare(Epoch{2}));
}

TEST_CASE("an agent does not wait when it was not asked to, or was released") {
  Assignments assignments;
  SECTION("not asked to") {
    REQUIRE(assignments.begin(Epoch{1}, Duration::zero()));
    assignments.finish();
  }
  SECTION("released while its ranks run") {
    REQUIRE(assignments.begin(Epoch{1}, 10s));
    assignments.release();
    assignments.finish();
  }
  SECTION("released while it waits") {
    assignments = waiting();
    assignments.release();
  }
  CHECK(assignments.stage() == Stage::over);
  CHECK_FALSE(assignments.prepare(Epoch{2}));
  CHECK_FALSE(assignments.begin(Epoch{2}, 10s));
}
