// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <thread>

#include <catch2/catch.hpp>

#include "launcher/starters/dial_in/agent_listener.hpp"
#include "launcher/starters/dial_in/dial_launcher.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

Deadline soon() {
  return Deadline::in(SteadyClock::instance(), 20s);
}

}  // namespace

TEST_CASE("a rank's claim survives encoding, and malformed claims are refused") {
  const auto claim = decode_claim(
      encode(RankClaim{.rank = 3, .size = 5, .local_rank = -1, .local_size = 2, .host = "n"}));
  REQUIRE(claim);
  CHECK(claim->rank == 3);
  CHECK(claim->size == 5);
  CHECK(claim->local_rank == -1);
  CHECK(claim->host == "n");
  CHECK_FALSE(decode_claim(encode(RankClaim{.rank = 5, .size = 5})));
  CHECK_FALSE(decode_claim(encode(RankClaim{.rank = -1, .size = 5})));
  CHECK_FALSE(decode_claim("too short"));
}

TEST_CASE("the rank's claim is read from our variables, else from an MPI's") {
  using Variables = std::map<std::string, std::string>;
  const auto read = [](const Variables& variables) {
    return read_rank_claim([&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  CHECK(read({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}})->rank == 1);
  CHECK(read({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "1"}})->local_rank == 1);
  CHECK(
      read({{"JSM_NAMESPACE_RANK", "1"}, {"JSM_NAMESPACE_SIZE", "3"}, {"PMIX_RANK", "1"}})->size ==
      3);
  CHECK(read({{"PMI_RANK", "x"}, {"PMI_SIZE", "3"}}).error().code == Errc::invalid_argument);
  CHECK(read({{"HORO_DIAL_IN_RANK", "2"},
              {"HORO_DIAL_IN_SIZE", "3"},
              {"PMI_RANK", "1"},
              {"PMI_SIZE", "3"}})
            ->rank == 2);
  CHECK(read({}).error().code == Errc::not_found);
}

TEST_CASE("the listener accepts an agent that knows the secret, and no other") {
  auto loop = Loop::make().value();
  std::vector<RankClaim> accepted;
  auto listener = AgentListener::open(*loop, ListenOn::loopback,
                                      [&](const UniqueFd& connection, const RankClaim& claim) {
                                        CHECK(connection);
                                        accepted.push_back(claim);
                                        loop->stop();
                                      })
                      .value();
  const auto addresses = listener->addresses();
  const auto secret = listener->secret();
  CHECK(addresses.starts_with("127.0.0.1:"));
  bool stranger = true;
  bool known = false;
  std::thread outside([&] {
    stranger =
        dial_launcher(addresses, std::string(64, 'a'), {.rank = 0, .size = 1}, soon()).has_value();
    // The first address leads nowhere.
    known = dial_launcher("127.0.0.1:1," + addresses, secret, {.rank = 1, .size = 2, .host = "h"},
                          soon())
                .has_value();
  });
  loop->run();
  outside.join();
  CHECK_FALSE(stranger);
  CHECK(known);
  REQUIRE(accepted.size() == 1);
  CHECK(accepted.front().rank == 1);
  CHECK(accepted.front().host == "h");
}
