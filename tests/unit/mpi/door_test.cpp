// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/door.hpp"

#include <map>
#include <thread>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

Deadline soon() {
  return Deadline::in(SteadyClock::instance(), 20s);
}

}  // namespace

TEST_CASE("a place goes over the wire and back, and nonsense does not") {
  const auto place = decode_place(
      encode(MpiPlace{.rank = 3, .size = 5, .local_rank = -1, .local_size = 2, .host = "n"}));
  REQUIRE(place);
  CHECK(place->rank == 3);
  CHECK(place->size == 5);
  CHECK(place->local_rank == -1);
  CHECK(place->host == "n");
  CHECK_FALSE(decode_place(encode(MpiPlace{.rank = 5, .size = 5})));
  CHECK_FALSE(decode_place(encode(MpiPlace{.rank = -1, .size = 5})));
  CHECK_FALSE(decode_place("too short"));
}

TEST_CASE("an MPI's variables say the place") {
  using Variables = std::map<std::string, std::string>;
  const auto read = [](const Variables& variables) {
    return read_mpi_place([&](const char* name) {
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
  CHECK(read({}).error().code == Errc::not_found);
}

TEST_CASE("who knows the secret comes in with its place, and nobody else") {
  auto loop = Loop::make().value();
  std::vector<MpiPlace> guests;
  auto door = Door::open(*loop, true, [&](const UniqueFd& connection, const MpiPlace& place) {
                CHECK(connection);
                guests.push_back(place);
                loop->stop();
              }).value();
  const auto addresses = door->addresses();
  const auto secret = door->secret();
  CHECK(addresses.starts_with("127.0.0.1:"));
  bool stranger = true;
  bool guest = false;
  std::thread outside([&] {
    stranger = knock(addresses, std::string(64, 'a'), {.rank = 0, .size = 1}, soon()).has_value();
    // The first address leads nowhere.
    guest = knock("127.0.0.1:1," + addresses, secret, {.rank = 1, .size = 2, .host = "h"}, soon())
                .has_value();
  });
  loop->run();
  outside.join();
  CHECK_FALSE(stranger);
  CHECK(guest);
  REQUIRE(guests.size() == 1);
  CHECK(guests.front().rank == 1);
  CHECK(guests.front().host == "h");
}
