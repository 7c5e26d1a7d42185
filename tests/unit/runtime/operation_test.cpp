// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/operations/operation.hpp"

#include <catch2/catch.hpp>

using horo::Errc;
using horo::runtime::OperationTable;

namespace {

void count(void* user, horo_op, horo_status) {
  ++*static_cast<int*>(user);
}

}  // namespace

TEST_CASE("a callback runs once, at the end or at once after it") {
  OperationTable operations;
  int before = 0;
  int after = 0;
  auto& operation = **operations.take();
  CHECK(*operation.on_complete(count, &before));
  CHECK(before == 0);
  const auto due = operation.finish({});
  REQUIRE(due);
  due->run();
  CHECK(before == 1);
  CHECK_FALSE(*operation.on_complete(count, &after));
  CHECK(after == 1);
  CHECK(before == 1);
}

TEST_CASE("a second callback is refused, and the first one still runs") {
  OperationTable operations;
  int first = 0;
  int second = 0;
  auto& operation = **operations.take();
  REQUIRE(operation.on_complete(count, &first));
  const auto refused = operation.on_complete(count, &second);
  REQUIRE(!refused);
  CHECK(refused.error().code == Errc::duplicate);
  operation.finish({})->run();
  CHECK(first == 1);
  CHECK(second == 0);
}
