// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <map>
#include <optional>
#include <thread>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "launcher/protocol/descriptor_stream.hpp"
#include "launcher/protocol/protocol.hpp"
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
  auto listener = AgentListener::open(*loop, ListenOn::loopback, [&](const DialledAgent& agent) {
                    CHECK(agent.connection);
                    accepted.push_back(agent.claim);
                    loop->stop();
                  }).value();
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

namespace {

/// One rank's agent and its launcher, connected.
struct Connected {
  Connected() {
    auto listener = AgentListener::open(*loop, ListenOn::loopback, [&](DialledAgent accepted) {
                      launcher.emplace(std::move(accepted));
                      loop->stop();
                    }).value();
    std::thread outside([&, addresses = listener->addresses(), secret = listener->secret()] {
      auto dialled = dial_launcher(addresses, secret, {.rank = 0, .size = 1, .host = "h"}, soon());
      if (dialled) agent.emplace(std::move(*dialled));
    });
    loop->run();
    outside.join();
    REQUIRE(agent);
    REQUIRE(launcher);
  }

  std::unique_ptr<Loop> loop = Loop::make().value();
  std::optional<DialledLauncher> agent;
  std::optional<DialledAgent> launcher;
};

AgentSpec spec_with(std::string_view token) {
  AgentSpec spec;
  spec.host = "h";
  spec.directory = "/";
  spec.command = {"true"};
  spec.ranks.emplace_back();
  spec.environment = {{"TOKEN", std::string(token)}};
  return spec;
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EAGAIN) continue;
    if (n <= 0) break;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

TEST_CASE("whoever listens to an agent that dialled in reads neither variables nor the secret") {
  Connected ends;
  protocol::SealedBytes agent(std::move(ends.agent->seals));
  protocol::SealedBytes launcher(std::move(ends.launcher->seals));
  auto spec = spec_with("a token of the user");
  spec.secret.fill('S');
  std::string plain;
  REQUIRE(protocol::encode(protocol::Start{spec}, plain));
  CHECK(plain.find("a token of the user") != std::string::npos);
  std::string wire;
  launcher.wrap(plain, wire);
  CHECK(wire.find("token") == std::string::npos);
  CHECK(wire.find("SSSS") == std::string::npos);
  std::string arrived;
  for (const char byte : wire) {
    const auto bytes = agent.unwrap({&byte, 1});
    REQUIRE(bytes);
    arrived += *bytes;
  }
  CHECK(arrived == plain);
}

TEST_CASE(
    "long messages cross to an agent that dialled in, and a changed one ends the connection") {
  Connected ends;
  auto agent = std::make_shared<protocol::SealedBytes>(std::move(ends.agent->seals));
  protocol::SealedBytes launcher(std::move(ends.launcher->seals));
  const std::string token(200'000, 't');
  std::string plain;
  REQUIRE(protocol::encode(protocol::Start{spec_with(token)}, plain));
  std::string wire;
  launcher.wrap(plain, wire);
  launcher.wrap(plain, wire);
  wire.back() = static_cast<char>(wire.back() ^ 1);

  std::vector<std::string> tokens;
  Status ended;
  const int fd = ends.agent->connection.value();
  const auto stream = protocol::DescriptorStream::open(
      *ends.loop, fd, fd,
      {.on_message =
           [&](const protocol::Message& message) {
             tokens.push_back(std::get<protocol::Start>(message).spec.environment.front().second);
           },
       .on_end =
           [&](const Status& status) {
             ended = status;
             ends.loop->stop();
           },
       .on_room = {}},
      agent);
  REQUIRE(stream);
  std::thread sender([&] { write_all(ends.launcher->connection.value(), wire); });
  ends.loop->run();
  sender.join();
  INFO((ended ? "" : ended.error().message));
  CHECK(tokens == std::vector{token});
  REQUIRE_FALSE(ended);
  CHECK(ended.error().code == Errc::protocol);
}
