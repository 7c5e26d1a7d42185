// SPDX-License-Identifier: Apache-2.0
#include "base/result.hpp"

#include <catch2/catch.hpp>

namespace {

using horo::Errc;
using horo::Result;

Result<int> slots(int n) {
  if (n < 1) return horo::fail(Errc::invalid_argument, "slots '{}' must be 1 or more", n);
  return n;
}

Result<int> doubled(int n) {
  HORO_TRY(const int value, slots(n));
  return 2 * value;
}

}  // namespace

TEST_CASE("HORO_TRY passes the value on") {
  CHECK(*doubled(4) == 8);
}

TEST_CASE("HORO_TRY returns the error of its expression") {
  const auto result = doubled(0);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Errc::invalid_argument);
  CHECK(result.error().message == "slots '0' must be 1 or more");
}

TEST_CASE("context goes in front of the message") {
  const auto result = doubled(0).context("reading hostfile 'h'");
  CHECK(result.error().message == "reading hostfile 'h': slots '0' must be 1 or more");
}
