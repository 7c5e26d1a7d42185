// SPDX-License-Identifier: Apache-2.0
// Runs the same scenario on four simulated and on four real hosts, whose connections pass through
// the test. The payloads must be equal, byte for byte, on every connection and in both directions.
#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/kv/kv_messages.hpp"
#include "base/kv/socket.hpp"
#include "tests/links/linked_hosts.hpp"

using namespace horo;                  // NOLINT(google-build-using-namespace): a test of it
using namespace horo::links;           // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime::tree;   // NOLINT(google-build-using-namespace): a test of it
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

namespace {

using Streams = std::map<std::pair<int, int>, std::vector<std::string>>;  // By (from, to).

/// Forwards one connection to a leader and keeps its data.
class Tap {
 public:
  explicit Tap(std::uint16_t to) : to_(to) {
    auto listener = LeaderListener::open("127.0.0.1");
    HORO_CHECK(listener.has_value());
    listener_ = std::move(*listener);
    thread_ = std::thread([this] { run(); });
  }

  ~Tap() { thread_.join(); }

  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  std::uint16_t port() const { return listener_.port; }

  /// The payloads in one direction, without hello and heartbeats. Call it after both ends have
  /// closed.
  std::vector<std::string> payloads(bool up) {
    if (thread_.joinable()) thread_.join();
    thread_ = std::thread([] {});
    std::string_view rest = up ? up_ : down_;
    auto seal = seal_of(up ? kv::Direction::to_server : kv::Direction::to_client);
    rest.remove_prefix(up ? kHello + 32 : 32 + 40);
    std::vector<std::string> out;
    while (!rest.empty()) {
      const auto length = *kv::decode_length(as_bytes(rest.substr(0, 4)), kMostPayload);
      std::string payload(rest.substr(4, length));
      HORO_CHECK(kv::opens(seal, payload, as_bytes(rest.substr(4 + length, 16))));
      if (payload[0] != 1 && payload[0] != 2) out.push_back(std::move(payload));
      rest.remove_prefix(4 + length + 16);
    }
    return out;
  }

 private:
  static constexpr std::size_t kHello = 44;

  /// Opens the frames of one direction, by the nonces that both ends have sent.
  kv::Seal seal_of(kv::Direction direction) const {
    kv::Handshake handshake{.client_version = kVersion};
    std::copy_n(up_.begin() + 12, sizeof(kv::Nonce), handshake.client_nonce.begin());
    std::copy_n(down_.begin(), sizeof(kv::Nonce), handshake.server_nonce.begin());
    return {channel_key({1, 2, 3}, Epoch{1}), handshake, direction};
  }

  void run() {
    pollfd entry{.fd = listener_.socket.value(), .events = POLLIN, .revents = 0};
    if (poll(&entry, 1, 10000) != 1) return;
    const UniqueFd below(accept(listener_.socket.value(), nullptr, nullptr));
    auto socket = kv::Socket::connect({.host = "127.0.0.1", .port = to_},
                                      Deadline::in(SteadyClock::instance(), 5s));
    if (!below || !socket) return;
    const UniqueFd above(socket->release());
    std::array<char, 4096> buffer{};
    for (;;) {
      std::array<pollfd, 2> ends{pollfd{.fd = below.value(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = above.value(), .events = POLLIN, .revents = 0}};
      if (poll(ends.data(), 2, 20000) <= 0) return;
      for (const bool up : {true, false}) {
        if (ends[up ? 0 : 1].revents == 0) continue;
        const auto n = read(ends[up ? 0 : 1].fd, buffer.data(), buffer.size());
        if (n <= 0) return;
        const auto size = static_cast<std::size_t>(n);
        (up ? up_ : down_).append(buffer.data(), size);
        if (send(ends[up ? 1 : 0].fd, buffer.data(), size, MSG_NOSIGNAL) != n) return;
      }
    }
  }

  const std::uint16_t to_;
  LeaderListener listener_;
  std::string up_;
  std::string down_;
  std::thread thread_;
};

/// The interface of the scenario to both kinds of job.
struct Job {
  std::function<void(int rank, const std::string& name, const runtime::Signature& signature)>
      submit;
  std::function<void(int rank)> join;
  std::function<void(int rank)> leave;
  /// Waits until all hosts together have this many entries.
  std::function<void(std::size_t entries)> settle;
};

/// Four hosts with two ranks each. Every step has one possible result, whatever the order inside
/// the step.
void play(const Job& job) {
  std::size_t entries = 0;
  const auto all = [&](const std::string& name, const runtime::Signature& signature, int from = 0) {
    for (int r = from; r < 8; ++r) job.submit(r, name, signature);
    job.settle(++entries);
  };
  for (const auto* name : {"a", "b", "a long name that is declared once", "a", "b"})
    all(name, vector_of(7));
  all("a", vector_of(8));  // All ranks change its signature.
  for (int r = 0; r < 8; ++r)
    job.submit(r, "a", vector_of(8, r == 5 ? runtime::DType::f64 : runtime::DType::f32));
  job.settle(++entries);  // The ranks disagree about it.
  auto gather = vector_of(3);
  gather.kind = runtime::Kind::allgather;
  for (int r = 0; r < 8; ++r) {
    const std::array<std::int64_t, 1> shape{r / 3};
    HORO_CHECK(runtime::set_shape(gather, shape).has_value());
    job.submit(r, "rows", gather);
  }
  job.settle(++entries);
  for (int r = 0; r < 7; ++r) {  // The ranks join one after the other, and the rest goes on.
    job.join(r);
    all("while joining", vector_of(2), r + 1);
  }
  job.join(7);
  job.settle(++entries);
  all("a", vector_of(8));
  job.leave(6);
  job.settle(++entries);
}

Streams simulated() {
  runtime::sim::World world({.hosts = runtime::sim::even_hosts(4, 2), .radix = 2});
  Streams streams;
  world.on_crossing([&streams](const runtime::sim::Crossing& crossing) {
    if (crossing.payload[0] != 2) streams[{crossing.from, crossing.to}].push_back(crossing.payload);
  });
  play({.submit =
            [&world](int rank, const std::string& name, const runtime::Signature& signature) {
              HORO_CHECK(world.submit(Rank{rank}, name, signature));
            },
        .join =
            [&world](int rank) {
              world.join(Rank{rank});
              world.run(1ms, [] { return false; });
            },
        .leave = [&world](int rank) { world.leave(Rank{rank}); },
        .settle =
            [&world](std::size_t entries) {
              REQUIRE(world.run(1s, [&world, entries] {
                for (int h = 0; h < 4; ++h) {
                  if (world.log(h).done() < entries) return false;
                }
                return true;
              }));
            }});
  for (int h = 0; h < 4; ++h) world.leader(h).leave();
  world.run(1s, [] { return false; });
  return streams;
}

Streams real() {
  Cluster cluster(4, 2, 2);
  std::map<std::pair<int, int>, std::unique_ptr<Tap>> taps;  // By (child, parent).
  for (int h = 1; h < 4; ++h) {
    auto& port = cluster.parent_ports[static_cast<std::size_t>(h)];
    auto tap = std::make_unique<Tap>(port);
    port = tap->port();
    taps.emplace(std::pair(h, place_of(h, 4, 2).parent), std::move(tap));
  }
  Hosts hosts(cluster);
  play({.submit =
            [&hosts](int rank, const std::string& name, const runtime::Signature& signature) {
              hosts.submit(Rank{rank}, name, signature);
            },
        .join =
            [&hosts](int rank) {
              hosts[rank / 2].join(Rank{rank});
              hosts.node(rank / 2).poke();
            },
        .leave =
            [&hosts](int rank) {
              hosts[rank / 2].leave(Rank{rank});
              hosts.node(rank / 2).poke();
            },
        .settle = [&hosts](std::size_t entries) { REQUIRE(hosts.wait(entries)); }});
  hosts.nodes.clear();
  Streams streams;
  for (auto& [ends, tap] : taps) {
    streams[{ends.first, ends.second}] = tap->payloads(true);
    streams[{ends.second, ends.first}] = tap->payloads(false);
  }
  return streams;
}

/// The payloads up to the first rank that leaves. After that they depend on which rank leaves
/// first.
Streams until_left(Streams streams) {
  for (auto& [ends, payloads] : streams) {
    const auto ends_here = [](const std::string& payload) {
      const auto frame = decode(as_bytes(payload));
      HORO_CHECK(frame.has_value());
      const auto* entry = std::get_if<LogEntry>(&frame->frame);
      return payload[0] == 10 || std::holds_alternative<Leave>(frame->frame) ||
             (entry != nullptr && entry->kind == LogKind::left);
    };
    auto last = std::find_if(payloads.begin(), payloads.end(), ends_here);
    if (last != payloads.end() && (*last)[0] != 10) ++last;
    payloads.erase(last, payloads.end());
  }
  return streams;
}

}  // namespace

TEST_CASE("simulated and real hosts send the same bytes") {
  const auto in_simulation = until_left(simulated());
  const auto on_wires = until_left(real());
  REQUIRE(in_simulation.size() == 6);
  REQUIRE(on_wires.size() == 6);
  for (const auto& [ends, payloads] : in_simulation) {
    INFO("from host " << ends.first << " to host " << ends.second);
    CHECK(payloads.size() >= 15);
    CHECK(on_wires.at(ends) == payloads);
  }
}
