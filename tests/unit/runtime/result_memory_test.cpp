// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/result_memory.hpp"

#include <cstring>

#include <catch2/catch.hpp>

using horo::runtime::ResultCache;

TEST_CASE("the memory of a large result is kept and used again, that of a small one is not") {
  ResultCache cache;
  auto large = cache.take(5 << 20);
  REQUIRE(large != nullptr);
  std::memset(large.get(), 7, 5 << 20);
  const void* const place = large.get();
  large.reset();
  auto again = cache.take((5 << 20) - 100);
  CHECK(again.get() == place);
  auto other = cache.take(5 << 20);
  CHECK(other.get() != place);
  CHECK(cache.take(0) != nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(cache.take(100).get()) % 64 == 0);
}

TEST_CASE("a block much larger than the request is kept for larger requests") {
  ResultCache cache;
  const void* const place = cache.take(64 << 20).get();  // Freed at once.
  CHECK(cache.take(3 << 20).get() != place);
  CHECK(cache.take(60 << 20).get() == place);
}
