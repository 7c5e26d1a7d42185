// SPDX-License-Identifier: Apache-2.0
// The part that the launcher of an elastic job takes in its store.
#include "support.hpp"

#include <future>
#include <thread>

#include <catch2/catch.hpp>

#include "base/kv/server/server.hpp"

using horo::kv::Server;
using horo::test::RunningServer;
using horo::test::soon;

TEST_CASE("sets under an intercepted prefix reach the handler and are not stored") {
  RunningServer running;
  std::promise<std::string> heard;
  running.with_server([&](Server& server) {
    server.intercept("call/", [&](std::string_view key, std::string_view value) {
      heard.set_value(std::string(key) + "=" + std::string(value));
    });
  });
  auto client = running.client();
  REQUIRE(client.set("call/7", "1", soon()));
  CHECK(heard.get_future().get() == "call/7=1");
  CHECK_FALSE(client.find("call/7", soon())->has_value());
  REQUIRE(client.set("other/7", "2", soon()));
  CHECK(**client.find("other/7", soon()) == "2");
}

TEST_CASE("a client that waits for a key gets the value that the launcher sets") {
  RunningServer running;
  std::thread waiter([&] {
    auto client = running.client();
    CHECK(*client.get("answer/7", soon()) == "member");
  });
  REQUIRE(running.reaches([](const auto& counts) { return counts.waiting == 1; }));
  running.with_server([](Server& server) { REQUIRE(server.set("answer/7", "member")); });
  waiter.join();
}

TEST_CASE("a key that the launcher has erased does not exist any more") {
  RunningServer running;
  running.with_server([](Server& server) {
    REQUIRE(server.set("answer/7", "member"));
    server.erase("answer/7");
    server.erase("never/set");
  });
  auto client = running.client();
  CHECK_FALSE(client.find("answer/7", soon())->has_value());
}

TEST_CASE("the launcher erases all keys of a kind, and they count no more") {
  RunningServer running;
  running.with_server([](Server& server) {
    for (int i = 0; i < 100; ++i) REQUIRE(server.set(fmt::format("old/{}", i), "value"));
    REQUIRE(server.set("new/1", "value"));
    server.erase_if([](std::string_view key) { return key.starts_with("old/"); });
    CHECK(server.counts().keys == 1);
  });
  auto client = running.client();
  CHECK_FALSE(client.find("old/7", soon())->has_value());
  CHECK(client.find("new/1", soon())->has_value());
}

TEST_CASE("a handler of an intercepted prefix may answer at once through the server") {
  RunningServer running;
  running.with_server([](Server& server) {
    server.intercept("call/", [&server](std::string_view, std::string_view value) {
      REQUIRE(server.set("answer", std::string(value) + "!"));
    });
  });
  auto client = running.client();
  REQUIRE(client.set("call/1", "yes", soon()));
  CHECK(*client.get("answer", soon()) == "yes!");
}

TEST_CASE("a server listens at a further address, once") {
  RunningServer running;
  horo::kv::Address added;
  horo::kv::Address again;
  running.with_server([&](Server& server) {
    added = server.listen_also({"127.0.0.2", 0}).value();
    again = server.listen_also({"127.0.0.2", 0}).value();
    CHECK(server.addresses().size() == 2);
    CHECK_FALSE(server.listen_also({"no address", 0}));
  });
  CHECK(added == again);
  auto client = horo::kv::Client::connect(to_string(added), running.secret, soon());
  REQUIRE(client);
  REQUIRE(client->set("key", "value", soon()));
  CHECK(*running.client().get("key", soon()) == "value");
}
