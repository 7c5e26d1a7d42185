// SPDX-License-Identifier: Apache-2.0
// Gloo's own code runs its rendezvous through our server.
#include "runtime/backends/gloo/gloo_store.hpp"

#include <catch2/catch.hpp>

#include "runtime/backends/gloo/gloo_mesh.hpp"
#include "tests/support/rank_processes.hpp"

using namespace horo;
using namespace horo::test;
using horo::runtime::connect_mesh;
using horo::runtime::GlooStore;

TEST_CASE("the error names the key of a peer that does not come") {
  MeetingServer server;
  const auto lacks_one = [&](int position) -> Status {
    RankClient rank_client(server);
    auto communicator = communicator_of(rank_client, position, 3);
    communicator.start_timeout = std::chrono::milliseconds(300);
    const auto context = connect_mesh(communicator);
    if (context) return fail(Errc::mismatch, "a mesh of 3 was made by 2");
    const auto& error = context.error();
    if (error.code != Errc::timed_out) return fail(Errc::mismatch, "{}", error.message);
    // The second rank waits for the third. The first may see the second end before that.
    if (position == 0 || (error.message.find("'gloo/epoch1/2'") != std::string::npos &&
                          error.message.find("rank 1 of 3") != std::string::npos))
      return {};
    return fail(Errc::mismatch, "unexpected: {}", error.message);
  };
  const pid_t other = fork_rank([&] { return lacks_one(1); });
  const pid_t present = fork_rank([&] { return lacks_one(0); });
  server.serve();
  CHECK(exit_code(other) == 0);
  CHECK(exit_code(present) == 0);
}

TEST_CASE("the store keeps Gloo's keys apart by prefix and its bytes as they are") {
  MeetingServer server;
  server.serve();
  RankClient rank_client(server);
  GlooStore one(rank_client.keys, "one", kTestTimeout);
  GlooStore two(rank_client.keys, "two", std::chrono::milliseconds(20));
  one.set("key", {'\0', '\xff'});
  one.wait({"key"});
  CHECK(one.get("key") == std::vector<char>{'\0', '\xff'});
  try {
    two.wait({"key"});
    FAIL("a key of another prefix was seen");
  } catch (const horo::runtime::GlooStoreError& error) {
    CHECK(error.error().code == Errc::timed_out);
    CHECK(error.error().message.find("'two/key'") != std::string::npos);
  }
}

TEST_CASE("an interface or position that does not exist is refused by name") {
  MeetingServer server;
  server.serve();
  RankClient rank_client(server);
  auto communicator = communicator_of(rank_client, 0, 1);
  communicator.interface = "nosuch0";
  const auto context = connect_mesh(communicator);
  REQUIRE_FALSE(context);
  CHECK(context.error().code == Errc::invalid_argument);
  CHECK(context.error().message.find("'nosuch0'") != std::string::npos);
  communicator.position = 2;
  CHECK(connect_mesh(communicator).error().code == Errc::invalid_argument);
}
