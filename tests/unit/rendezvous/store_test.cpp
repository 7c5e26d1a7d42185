// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <vector>

#include <catch2/catch.hpp>

#include "base/kv/server/key_value_store.hpp"

using horo::Bytes;
using horo::Errc;
using horo::kv::KeyValueStore;

TEST_CASE("a value is replaced and counted once") {
  KeyValueStore store({});
  REQUIRE(store.set("key", "long value"));
  REQUIRE(store.set("key", "short"));
  CHECK(*store.find("key") == "short");
  CHECK(store.keys() == 1);
  CHECK(store.bytes() == Bytes{3 + 5 + KeyValueStore::kEntryCost});
  CHECK(store.find("other") == nullptr);
}

TEST_CASE("a value that is being sent survives its replacement") {
  KeyValueStore store({});
  REQUIRE(store.set("key", "old"));
  const auto held = store.find("key");
  REQUIRE(store.set("key", "new"));
  CHECK(*held == "old");
}

TEST_CASE("a request beyond a limit is refused with the limit and changes nothing") {
  KeyValueStore store(
      {.value = Bytes{10}, .total = Bytes{2 * (1 + 10 + KeyValueStore::kEntryCost)}, .keys = 3});
  REQUIRE(store.set("a", "0123456789"));
  CHECK(store.set("b", "0123456789x").error().message.find("takes at most 10") !=
        std::string::npos);
  REQUIRE(store.set("b", "0123456789"));
  const auto full = store.set("c", "");
  CHECK(full.error().code == Errc::resource_exhausted);
  CHECK(full.error().message.find("of at most 278 bytes") != std::string::npos);
  CHECK(store.keys() == 2);
  CHECK(store.find("c") == nullptr);
  REQUIRE(store.set("b", "9876543210"));  // Replacing needs no room.

  KeyValueStore few({.keys = 1});
  REQUIRE(few.set("a", "1"));
  CHECK(few.set("b", "1").error().message.find("holds 1 keys") != std::string::npos);
  CHECK(few.add("b", 1).error().code == Errc::resource_exhausted);
  CHECK(few.compare_and_set("b", std::nullopt, "1").error().code == Errc::resource_exhausted);
  CHECK(few.set("a", "2"));
}

TEST_CASE("erasing frees room") {
  KeyValueStore store({.keys = 1});
  REQUIRE(store.set("a", "1"));
  CHECK(store.erase(std::vector<std::string>{"a", "b", "a"}) == 1);
  CHECK(store.bytes() == Bytes{0});
  CHECK(store.set("b", "1"));
}

TEST_CASE("add counts from zero and stores decimal text") {
  KeyValueStore store({});
  CHECK(*store.add("n", 5) == 5);
  CHECK(*store.add("n", -7) == -2);
  CHECK(*store.find("n") == "-2");
  REQUIRE(store.set("n", "12x"));
  CHECK(store.add("n", 1).error().message.find("'12x' of key 'n'") != std::string::npos);
  REQUIRE(store.set("n", std::to_string(std::numeric_limits<std::int64_t>::max())));
  CHECK(store.add("n", 1).error().code == Errc::invalid_argument);
}

TEST_CASE("compare-and-set distinguishes no value from an empty value") {
  KeyValueStore store({});
  CHECK_FALSE(*store.compare_and_set("k", "", "1"));
  CHECK(*store.compare_and_set("k", std::nullopt, ""));
  CHECK_FALSE(*store.compare_and_set("k", std::nullopt, "2"));
  CHECK_FALSE(*store.compare_and_set("k", "x", "2"));
  CHECK(*store.compare_and_set("k", "", "2"));
  CHECK(*store.find("k") == "2");
}
