// SPDX-License-Identifier: Apache-2.0
// Leaders find each other through the job's store.
#include "runtime/tree/connections/start_leader.hpp"

#include <future>

#include <catch2/catch.hpp>

#include "tests/links/linked_hosts.hpp"
#include "tests/rendezvous/support.hpp"

using namespace horo;                  // NOLINT(google-build-using-namespace): a test of it
using namespace horo::links;           // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime::tree;   // NOLINT(google-build-using-namespace): a test of it
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

using runtime::bootstrap::Meeting;

namespace {

constexpr int kHosts = 4;

Meeting meeting_of(int host, Epoch epoch, const test::RunningServer& server) {
  Meeting meeting;
  meeting.identity.host_index = host;
  meeting.epoch = epoch;
  for (int h = 0; h < kHosts; ++h)
    meeting.hosts.push_back(
        {.name = fmt::format("node{}", h), .address = "127.0.0.1", .ranks = {Rank{h}}});
  meeting.store = std::make_shared<runtime::bootstrap::JobStore>();
  meeting.store->address = server.address();
  meeting.store->secret = server.secret;
  return meeting;
}

}  // namespace

TEST_CASE("leaders find each other through the store, epoch after epoch") {
  const test::RunningServer server;
  for (const auto epoch : {Epoch{1}, Epoch{2}, Epoch{3}}) {
    std::vector<std::unique_ptr<TestHost>> states;
    std::vector<std::future<Result<std::unique_ptr<LeaderService>>>> starting;
    for (int h = 0; h < kHosts; ++h) {
      states.push_back(std::make_unique<TestHost>(std::vector{Rank{h}}));
      starting.push_back(std::async(std::launch::async, [&, h, epoch] {
        return start_leader_service(meeting_of(h, epoch, server), {.radix = 2},
                                    *states[static_cast<std::size_t>(h)], test::soon(),
                                    [] { return false; });
      }));
    }
    std::vector<std::unique_ptr<LeaderService>> nodes;
    for (int h = 0; h < kHosts; ++h) {
      auto node = starting[static_cast<std::size_t>(h)].get();
      REQUIRE(node);
      (*node)->add_set(SetId{0}, RankRanges::of(0, kHosts),
                       states[static_cast<std::size_t>(h)].get());
      nodes.push_back(std::move(*node));
    }
    for (int h = 0; h < kHosts; ++h) {
      states[static_cast<std::size_t>(h)]->submit(Rank{h}, "x", vector_of(1));
      nodes[static_cast<std::size_t>(h)]->poke();
    }
    for (auto& state : states)
      CHECK(state->wait([](TestHost& host) { return host.records().size() == 1; }));
  }
}

TEST_CASE("a leader whose parent does not come stops waiting when a rank is lost") {
  const test::RunningServer server;
  TestHost state({Rank{3}});
  int looks = 0;
  const auto node = start_leader_service(meeting_of(3, Epoch{1}, server), {.radix = 1}, state,
                                         Deadline::never(), [&] { return ++looks > 2; });
  REQUIRE_FALSE(node);
  CHECK(node.error().code == Errc::peer_lost);
  CHECK(node.error().message.find("node2") != std::string::npos);
}

TEST_CASE("the error names a parent that never comes") {
  const test::RunningServer server;
  TestHost state({Rank{3}});
  const auto node =
      start_leader_service(meeting_of(3, Epoch{1}, server), {.radix = 1}, state,
                           Deadline::in(SteadyClock::instance(), 50ms), [] { return false; });
  REQUIRE_FALSE(node);
  CHECK(node.error().code == Errc::timed_out);
  CHECK(node.error().message.find("node2") != std::string::npos);
}
