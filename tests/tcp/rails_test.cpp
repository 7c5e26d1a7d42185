// SPDX-License-Identifier: Apache-2.0
// Several networks between two ranks: the addresses of the loopback interface stand for them.
#include <arpa/inet.h>
#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "base/result.hpp"
#include "runtime/backends/tcp/tcp_rails.hpp"
#include "runtime/backends/tcp/tcp_transport.hpp"

using namespace horo;
using namespace horo::runtime;

namespace {

const kv::Secret kSecret{1, 2, 3};

const std::vector<TcpRail> kTwo{{.interface = "one", .address = "127.0.1.1"},
                                {.interface = "two", .address = "127.0.2.1"}};

const std::vector<TcpRail> kOthers{{.interface = "one", .address = "127.0.1.7"},
                                   {.interface = "two", .address = "127.0.7.1"}};

Communicator pair_at(int position) {
  return {
      .position = position, .members = {0, 1}, .name = "pair", .timeout = std::chrono::seconds(30)};
}

struct RailedRank {
  std::shared_ptr<TcpEndpoint> endpoint;
  std::unique_ptr<TcpTransport> transport;

  RailedRank(int position, const std::vector<TcpRail>& rails)
      : endpoint(TcpEndpoint::open(rails, position, kSecret).value()),
        transport(TcpTransport::make(endpoint, pair_at(position), 2).value()) {}

  void know(int rank, const TcpContact& contact) const {
    endpoint->contacts()[rank] = contact;
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

std::string host_by(int (*name)(int, sockaddr*, socklen_t*), int socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  HORO_CHECK(name(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  std::array<char, INET_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
}

/// A set that keeps the connections that it gets.
class Witness final : public TcpSet {
 public:
  bool adopt(int, std::uint32_t worker, ProvenSocket socket) override {
    const std::lock_guard lock(mutex_);
    sockets_[worker] = std::move(socket);
    came_.notify_all();
    return true;
  }

  void peer_closed(int) override {}

  /// The hosts at the peer's end and at this one. Blocks: until the worker's connection has come.
  std::pair<std::string, std::string> ends(std::uint32_t worker) {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return sockets_.contains(worker); });
    const int socket = sockets_[worker].socket.value();
    return {host_by(&getpeername, socket), host_by(&getsockname, socket)};
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::uint32_t, ProvenSocket> sockets_;
};

}  // namespace

TEST_CASE("interfaces are named once, and have addresses") {
  const auto loopback = rails_of("lo");
  REQUIRE(loopback);
  REQUIRE(loopback->size() == 1);
  CHECK(loopback->front().address == "127.0.0.1");
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

TEST_CASE("each worker's connection goes over its rail, to the address that the peer names") {
  const RailedRank low(0, kTwo);
  CHECK(low.endpoint->address().host == "127.0.1.1");
  CHECK(low.endpoint->contact().back() == kv::Address{"127.0.2.1", low.endpoint->address().port});
  // No network but that of all addresses has both ends of the second rail.
  const auto high = TcpEndpoint::open(kOthers, 1, kSecret).value();
  Witness witness;
  high->add(set_token(kSecret, "pair"), witness);
  low.know(1, high->contact());
  CHECK(low.send(1, 0).empty());
  CHECK(low.send(1, 1).empty());
  CHECK(witness.ends(0) == std::pair<std::string, std::string>{"127.0.1.1", "127.0.1.7"});
  CHECK(witness.ends(1) == std::pair<std::string, std::string>{"127.0.2.1", "127.0.7.1"});
  high->remove(set_token(kSecret, "pair"));
}

TEST_CASE("messages move over all rails, and an error names the one that fails") {
  const RailedRank low(0, kTwo);
  {
    const RailedRank high(1, kOthers);
    low.know(1, high.endpoint->contact());
    high.know(0, low.endpoint->contact());
    CHECK(low.send(1, 0).empty());
    CHECK(low.send(1, 1).empty());
  }
  // Both ports are closed now; the errors say where they were looked for.
  const RailedRank fresh(0, kTwo);
  fresh.know(1, {{"127.0.1.7", 1}, {"127.0.7.1", 1}});
  CHECK_THAT(fresh.send(1, 0), Catch::StartsWith("rank 1 at 127.0.1.7:1 does not answer over TCP "
                                                 "through interface one: connecting to"));
  CHECK_THAT(fresh.send(1, 1), Catch::StartsWith("rank 1 at 127.0.7.1:1 does not answer over TCP "
                                                 "through interface two: connecting to"));
}

TEST_CASE("every rail has the same number of workers") {
  CHECK(TcpTransport::workers_of(2) == 3);
  CHECK(TcpTransport::workers_of(1000) == 1);
  CHECK(TcpTransport::workers_of(2, 2) == 4);
  CHECK(TcpTransport::workers_of(2, 3) == 3);
  CHECK(TcpTransport::workers_of(2, 4) == 4);
  CHECK(TcpTransport::workers_of(1000, 2) == 2);
}
