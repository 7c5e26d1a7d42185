// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/operations/operation.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include <catch2/catch.hpp>

#include "base/race_point.hpp"

using horo::Errc;
using horo::race_point_hook;
using horo::runtime::Operation;
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

TEST_CASE("a callback that comes while the operation ends finds it done") {
  OperationTable operations;
  static Operation* ending;
  static std::thread other;
  static bool was_done;
  ending = *operations.take();
  was_done = false;
  race_point_hook = [] {
    race_point_hook = nullptr;
    std::atomic<bool> runs{false};
    other = std::thread([&runs] {
      runs = true;
      REQUIRE(ending->on_complete([](void*, horo_op, horo_status) { was_done = ending->done(); },
                                  nullptr));
    });
    while (!runs) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // Time to reach the callback.
  };
  CHECK_FALSE(ending->finish({}));
  other.join();
  CHECK(was_done);
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
