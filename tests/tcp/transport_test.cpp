// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks in one process, and from a peer that breaks the rules.
#include <csignal>
#include <cstring>
#include <filesystem>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/codec/bytes.hpp"
#include "base/kv/socket.hpp"
#include "runtime/backends/tcp/tcp_transport.hpp"

using namespace horo;
using namespace horo::runtime;

namespace {

const kv::Secret kSecret{1, 2, 3};

Deadline soon() {
  return Deadline::in(SteadyClock::instance(), std::chrono::seconds(30));
}

/// One rank of a set of two, with one worker.
struct One {
  std::shared_ptr<TcpEndpoint> endpoint;
  std::unique_ptr<TcpTransport> transport;

  explicit One(int position, Duration timeout = std::chrono::seconds(30),
               const std::string& address = "127.0.0.1")
      : endpoint(TcpEndpoint::open(address, position, kSecret).value()) {
    const Communicator pair{
        .position = position, .members = {0, 1}, .name = "pair", .timeout = timeout};
    transport = TcpTransport::make(endpoint, pair, 1).value();
  }

  void meet(const One& other) {
    endpoint->contacts() = {{endpoint->me(), endpoint->contact()},
                            {other.endpoint->me(), other.endpoint->contact()}};
    transport->take_addresses();
  }
};

struct Two {
  One low;
  One high;

  explicit Two(Duration timeout = std::chrono::seconds(30),
               const std::string& address = "127.0.0.1")
      : low(0, timeout, address), high(1, timeout, address) {
    low.meet(high);
    high.meet(low);
  }
};

TransportMessage message(int peer, std::uint64_t tag, std::vector<std::byte>& bytes) {
  return {.peer = peer, .tag = tag, .at = bytes.data(), .bytes = bytes.size()};
}

std::vector<std::byte> filled(std::size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

/// Rank 0, made by hand: a connection to rank 1 that has proven its identity.
kv::Socket connect_as_rank_0(const One& to) {
  auto socket = kv::Socket::connect(to.endpoint->address(), soon()).value();
  auto handshake = TcpHandshake::connecting(
      kSecret, {.set = set_token(kSecret, "pair"), .from = 0, .to = 1, .worker = 0},
      kv::make_nonce().value());
  while (true) {
    const std::string output(handshake.output());
    handshake.sent(output.size());
    REQUIRE(socket.send(as_bytes(output), soon()));
    if (handshake.open()) return socket;
    std::array<std::uint8_t, 64> buffer{};
    const auto n =
        socket.receive(std::span(buffer).first(std::min(buffer.size(), handshake.room())), soon());
    REQUIRE(n);
    REQUIRE(handshake.feed(std::span(buffer).first(*n)));
  }
}

/// Returns the error of rank 1 when it waits for 8 bytes with tag 7 and rank 0 sends these bytes
/// and ends.
std::string heard(std::string_view bytes) {
  Two two;
  auto rogue = connect_as_rank_0(two.high);
  REQUIRE(rogue.send(as_bytes(bytes), soon()));
  rogue.close();
  auto room = filled(8, 0);
  const auto pending = two.high.transport->receive(message(0, 7, room)).value();
  const auto status = pending->wait();
  if (status) return "";
  CHECK(status.error().code == Errc::peer_lost);
  CHECK_THAT(status.error().message,
             Catch::StartsWith(fmt::format("rank 0 at {} does not answer over TCP: ",
                                           kv::to_string(two.low.endpoint->address()))));
  return status.error().message.substr(status.error().message.find("TCP: ") + 5);
}

std::string header(std::uint64_t tag, std::uint64_t bytes) {
  return ByteWriter().fixed(tag).fixed(bytes).take();
}

/// Stops this process for 4 s, as Ctrl-Z or a batch system does. Returns a little later than it
/// goes on.
void be_suspended() {
  const auto child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    kill(getppid(), SIGSTOP);
    sleep(4);
    kill(getppid(), SIGCONT);
    usleep(200'000);
    _exit(0);
  }
  REQUIRE(waitpid(child, nullptr, 0) == child);
}

}  // namespace

TEST_CASE("time during which the process was stopped does not count as a peer's silence") {
  Two two(std::chrono::seconds(2));
  auto in = filled(8, 0);
  auto out = filled(8, 1);
  Status received;
  std::thread waiting(
      [&] { received = two.high.transport->receive(message(0, 1, in)).value()->wait(); });
  be_suspended();
  const auto sent = two.low.transport->send(message(1, 1, out)).value();
  CHECK(sent->wait());
  waiting.join();
  CHECK(received);
  CHECK(in == out);
}

TEST_CASE("large messages in both directions at once arrive whole") {
  constexpr std::size_t kBytes = 32 << 20;
  Two two;
  std::array<std::string, 2> wrong{"not done", "not done"};
  const auto run = [&](One& one, int me) {
    auto out = filled(kBytes, me + 1);
    auto in = filled(kBytes, 0);
    const auto received = one.transport->receive(message(1 - me, 1, in)).value();
    const auto sent = one.transport->send(message(1 - me, 1, out)).value();
    const auto first = sent->wait();
    const auto second = received->wait();
    wrong[static_cast<std::size_t>(me)] = !first ? first.error().message
                                          : !second
                                              ? second.error().message
                                              : (in == filled(kBytes, 2 - me) ? "" : "wrong bytes");
  };
  std::thread other([&] { run(two.high, 1); });
  run(two.low, 0);
  other.join();
  CHECK(wrong == std::array<std::string, 2>{});
}

TEST_CASE("a message that comes before its receive is posted waits in the socket") {
  Two two;
  auto one = filled(1000, 1);
  auto two_ = filled(0, 2);
  std::thread sender([&] {
    const auto first = two.low.transport->send(message(1, 5, one)).value();
    const auto second = two.low.transport->send(message(1, 6, two_)).value();
    static_cast<void>(first->wait());
    static_cast<void>(second->wait());
  });
  auto early = filled(0, 0);
  sender.join();
  auto room = filled(1000, 0);
  const auto first = two.high.transport->receive(message(0, 5, room)).value();
  const auto second = two.high.transport->receive(message(0, 6, early)).value();
  CHECK(second->wait());
  CHECK(first->wait());
  CHECK(room == one);
}

TEST_CASE("a set takes one descriptor for each worker and one more, until it connects") {
  const auto endpoint = TcpEndpoint::open("127.0.0.1", 0, kSecret).value();
  const auto open = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = open();
  const auto transport =
      TcpTransport::make(endpoint, {.position = 0, .members = {0, 1}, .name = "pair"}, 3).value();
  CHECK(open() - before == 4);
}

TEST_CASE("two ranks that have only IPv6 exchange a message") {
  if (!TcpEndpoint::open("::1", 0, kSecret)) {
    WARN("this machine has no IPv6");
    return;
  }
  Two two(std::chrono::seconds(30), "::1");
  CHECK(kv::to_string(two.high.endpoint->address()).starts_with("[::1]:"));
  auto out = filled(8, 1);
  auto in = filled(8, 0);
  const auto sent = two.low.transport->send(message(1, 1, out)).value();
  std::thread sender([&] { static_cast<void>(sent->wait()); });
  const auto received = two.high.transport->receive(message(0, 1, in)).value()->wait();
  sender.join();
  CHECK(received);
  CHECK(in == out);
}

TEST_CASE("a peer that ends in the middle of a message, or between messages, is reported") {
  CHECK(heard(header(7, 8) + "12345678") == "");
  CHECK(heard(header(7, 8) + "1234") == "its connection has ended in the middle of a message");
  CHECK(heard(header(7, 8).substr(0, 9)) == "its connection has ended in the middle of a message");
  CHECK(heard("") == "its connection has ended");
}

TEST_CASE("a message with another tag or length than the one that is due is refused") {
  for (const auto& wrong :
       {header(8, 8) + "12345678", header(7, 9) + "123456789", header(7, ~std::uint64_t{0}) + "1",
        header(7, 7) + "1234567", std::string(100'000, '\xa5')})
    CHECK_THAT(heard(wrong), Catch::Contains("another message than the one that is due"));
}

TEST_CASE("a peer whose port is closed is reported at once") {
  Two two;
  two.high.transport.reset();
  two.high.endpoint.reset();
  auto room = filled(8, 0);
  const auto pending = two.low.transport->receive(message(1, 1, room)).value();
  const auto status = pending->wait();
  REQUIRE_FALSE(status);
  CHECK(status.error().code == Errc::peer_lost);
  CHECK_THAT(status.error().message,
             Catch::StartsWith("rank 1 at 127.0.0.1:") &&
                 Catch::Contains("does not answer over TCP: connecting to 127.0.0.1:"));
}

TEST_CASE("an interrupted wait ends, and the peer notices that the rank hangs up") {
  Two two;
  auto sent = filled(8, 1);
  auto room = filled(8, 0);
  std::string peer_heard;
  std::thread peer([&] {
    const auto first = two.low.transport->send(message(1, 1, sent)).value();
    static_cast<void>(first->wait());
    auto more = filled(8, 0);
    const auto second = two.low.transport->receive(message(1, 2, more)).value();
    const auto status = second->wait();
    peer_heard = status ? "nothing" : status.error().message;
  });
  const auto first = two.high.transport->receive(message(0, 1, room)).value();
  REQUIRE(first->wait());
  std::thread stopper([&] {
    two.high.transport->interrupt();
    two.high.transport->hang_up();
  });
  auto never = filled(8, 0);
  const auto second = two.high.transport->receive(message(0, 3, never)).value();
  const auto status = second->wait();
  stopper.join();
  peer.join();
  REQUIRE_FALSE(status);
  CHECK(status.error().code == Errc::cancelled);
  CHECK_THAT(peer_heard, Catch::EndsWith(" does not answer over TCP: its connection has ended"));
}

TEST_CASE("a rank that connects a second time is refused and leaves nothing behind") {
  Two two;
  const auto first = connect_as_rank_0(two.high);
  auto second = connect_as_rank_0(two.high);
  std::array<std::uint8_t, 1> byte{};
  const auto n = second.receive(byte, soon());
  CHECK((!n || *n == 0));
  CHECK(two.high.endpoint->watched() == 1);
}

TEST_CASE("a firewall in one direction is reported by both ranks with the address that is closed") {
  // A listener that is full answers no more connections, as one behind a firewall does not.
  const auto wall = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(bind(wall, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(listen(wall, 0) == 0);
  REQUIRE(getsockname(wall, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const UniqueFd owned(wall);
  const kv::Address closed{"127.0.0.1", ntohs(address.sin_port)};
  const auto filling = kv::Socket::connect(closed, soon());

  Two two(std::chrono::milliseconds(300));
  two.low.endpoint->contacts()[1] = {closed};
  two.low.transport->take_addresses();
  auto room = filled(8, 0);
  const auto at_low = two.low.transport->receive(message(1, 1, room)).value()->wait();
  REQUIRE_FALSE(at_low);
  CHECK_THAT(at_low.error().message,
             Catch::Contains("it has not answered a connection from 127.0.0.1:") &&
                 Catch::Contains(fmt::format("to {} for 300 ms", kv::to_string(closed))) &&
                 Catch::Contains("a firewall may keep this host from that port"));
  const auto at_high = two.high.transport->receive(message(0, 1, room)).value()->wait();
  REQUIRE_FALSE(at_high);
  CHECK_THAT(at_high.error().message,
             Catch::Contains(fmt::format("it has not connected to this rank at {} for 300 ms",
                                         kv::to_string(two.high.endpoint->address()))));
}
