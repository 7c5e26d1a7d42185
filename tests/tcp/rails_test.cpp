// SPDX-License-Identifier: Apache-2.0
// Several networks between two ranks: the addresses of the loopback interface stand for them.
#include <catch2/catch.hpp>

#include "runtime/backends/tcp/tcp_rails.hpp"
#include "runtime/backends/tcp/tcp_transport.hpp"

using namespace horo;
using namespace horo::runtime;

namespace {

const kv::Secret kSecret{1, 2, 3};

const std::vector<TcpRail> kTwo{{.interface = "one", .address = "127.0.1.1", .prefix = 24},
                                {.interface = "two", .address = "127.0.2.1", .prefix = 24}};

Communicator pair_at(int position) {
  return {.position = position,
          .members = {0, 1},
          .name = "pair",
          .addresses = {{"127.0.1.1", "127.0.2.1"}, {"10.0.0.1", "127.0.1.1", "127.0.2.1"}},
          .timeout = std::chrono::seconds(30)};
}

struct RailedRank {
  std::shared_ptr<TcpEndpoint> endpoint;
  std::unique_ptr<TcpTransport> transport;

  explicit RailedRank(int position)
      : endpoint(TcpEndpoint::open(kTwo, position, kSecret).value()),
        transport(TcpTransport::make(endpoint, pair_at(position), 2).value()) {}

  void know(int rank, const kv::Address& address) {
    endpoint->contacts()[rank] = address;
    transport->take_addresses();
  }

  /// The error of a message to `peer` by this worker; empty: it has moved.
  std::string send(int peer, std::uint32_t worker) const {
    std::byte byte{};
    const auto sent =
        transport->send({.peer = peer, .tag = 1, .at = &byte, .bytes = 1, .worker = worker});
    const auto status = sent.value()->wait();
    return status ? "" : status.error().message;
  }
};

}  // namespace

TEST_CASE("a peer's address on a rail is the one in its network") {
  const TcpRail four{.interface = "a", .address = "10.1.6.3", .prefix = 23};
  const std::vector<std::string> addresses{"fd00::1", "10.1.4.9", "10.1.7.9", "10.1.6.9"};
  REQUIRE(address_on(four, addresses) != nullptr);
  CHECK(*address_on(four, addresses) == "10.1.7.9");
  CHECK(address_on({.interface = "a", .address = "10.1.6.3", .prefix = 32}, addresses) == nullptr);
  const TcpRail six{.interface = "b", .address = "fd00::7", .prefix = 64};
  CHECK(*address_on(six, addresses) == "fd00::1");
  CHECK(address_on({.interface = "b", .address = "fd01::7", .prefix = 64}, addresses) == nullptr);
  CHECK(address_on(six, {}) == nullptr);
}

TEST_CASE("interfaces are named once, and have addresses") {
  const auto loopback = rails_of("lo");
  REQUIRE(loopback);
  REQUIRE(loopback->size() == 1);
  CHECK(loopback->front().address == "127.0.0.1");
  CHECK(loopback->front().prefix == 8);
  CHECK_THAT(rails_of("lo,lo").error().message, Catch::Contains("'lo' is named twice"));
  CHECK_THAT(rails_of("lo,nosuch").error().message, Catch::Contains("'nosuch' has no IP address"));
  CHECK_FALSE(rails_of("lo,"));
}

TEST_CASE("two interfaces with one address are refused") {
  const std::vector<TcpRail> same{{.interface = "a", .address = "127.0.1.1"},
                                  {.interface = "b", .address = "127.0.2.1"},
                                  {.interface = "c", .address = "127.0.1.1"}};
  CHECK(check_apart(std::span(same).first(2)));
  CHECK_THAT(check_apart(same).error().message,
             Catch::Contains("the interfaces 'a' and 'c' have the same address 127.0.1.1"));
}

TEST_CASE("a port that is free at no rail but the first is given up") {
  const auto opened = TcpEndpoint::open({kTwo.front(), kTwo.back(), kTwo.front()}, 0, kSecret);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Errc::unavailable);
  CHECK_THAT(opened.error().message, Catch::Contains("listening on 127.0.1.1:"));
}

TEST_CASE("each worker's connection goes over its rail") {
  RailedRank low(0);
  CHECK(low.endpoint->address().host == "127.0.1.1");
  {
    RailedRank high(1);
    low.know(1, high.endpoint->address());
    high.know(0, low.endpoint->address());
    CHECK(low.send(1, 0).empty());
    CHECK(low.send(1, 1).empty());
  }
  // Both ports are closed now; the errors say where they were looked for.
  RailedRank fresh(0);
  fresh.know(1, {"127.0.1.1", 1});
  CHECK_THAT(fresh.send(1, 0), Catch::StartsWith("rank 1 at 127.0.1.1:1 does not answer over TCP "
                                                 "through interface one: connecting to"));
  CHECK_THAT(fresh.send(1, 1), Catch::StartsWith("rank 1 at 127.0.2.1:1 does not answer over TCP "
                                                 "through interface two: connecting to"));
}

TEST_CASE("a peer whose host is not on a rail is named") {
  const auto endpoint = TcpEndpoint::open(kTwo, 0, kSecret).value();
  auto pair = pair_at(0);
  pair.addresses[1] = {"127.0.1.1", "10.0.0.1"};
  const auto made = TcpTransport::make(endpoint, pair, 2);
  REQUIRE_FALSE(made);
  CHECK_THAT(made.error().message,
             Catch::Contains("the host of rank 1 has no address in the network 127.0.2.1/24 of "
                             "interface two; it has 127.0.1.1, 10.0.0.1"));
}

TEST_CASE("every rail has the same number of workers") {
  CHECK(TcpTransport::workers_of(2) == 3);
  CHECK(TcpTransport::workers_of(1000) == 1);
  CHECK(TcpTransport::workers_of(2, 2) == 4);
  CHECK(TcpTransport::workers_of(2, 3) == 3);
  CHECK(TcpTransport::workers_of(2, 4) == 4);
  CHECK(TcpTransport::workers_of(1000, 2) == 2);
}
