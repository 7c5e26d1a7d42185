// SPDX-License-Identifier: Apache-2.0
#include "base/worker_env.hpp"

#include <map>

#include <catch2/catch.hpp>

using horo::LocalRank;
using horo::Rank;
using horo::WorkerIdentity;

namespace {

std::map<std::string, std::string> as_map(const WorkerIdentity& identity) {
  const auto env = horo::worker_environment(identity);
  return {env.begin(), env.end()};
}

auto lookup_in(const std::map<std::string, std::string>& env) {
  return [&env](const char* name) -> const char* {
    const auto found = env.find(name);
    return found == env.end() ? nullptr : found->second.c_str();
  };
}

const WorkerIdentity kThird{.rank = Rank{3},
                            .size = 4,
                            .local_rank = LocalRank{1},
                            .local_size = 2,
                            .cross_rank = 1,
                            .cross_size = 2,
                            .host_index = 1,
                            .hostname = "node2",
                            .master_address = "node1",
                            .master_port = 29500,
                            .worker_addresses = {"node1:1", "node1:2", "node2:1", "node2:2"}};

}  // namespace

TEST_CASE("every framework finds its own variables") {
  const auto env = as_map(kThird);
  CHECK(env.at("HORO_RANK") == "3");
  CHECK(env.at("HOROVOD_CROSS_RANK") == "1");
  CHECK(env.at("RANK") == "3");
  CHECK(env.at("WORLD_SIZE") == "4");
  CHECK(env.at("LOCAL_WORLD_SIZE") == "2");
  CHECK(env.at("GROUP_RANK") == "1");
  CHECK(env.at("MASTER_ADDR") == "node1");
  CHECK(env.at("JAX_COORDINATOR_ADDRESS") == "node1:29500");
  CHECK(
      env.at("TF_CONFIG") ==
      R"({"cluster": {"worker": ["node1:1", "node1:2", "node2:1", "node2:2"]}, "task": {"type": "worker", "index": 3}})");
}

TEST_CASE("an identity read from the environment is the one that was written") {
  const auto env = as_map(kThird);
  const auto read = horo::read_worker_identity(lookup_in(env));
  REQUIRE(read);
  REQUIRE(read->has_value());
  CHECK((*read)->rank == Rank{3});
  CHECK((*read)->local_size == 2);
  CHECK((*read)->hostname == "node2");
  CHECK((*read)->board_fd == -1);
}

TEST_CASE("without HORO_RANK a process has no identity") {
  const std::map<std::string, std::string> env;
  CHECK_FALSE(horo::read_worker_identity(lookup_in(env))->has_value());
}

TEST_CASE("a bad number is refused with name and value") {
  auto env = as_map(kThird);
  env["HORO_SIZE"] = "four";
  const auto read = horo::read_worker_identity(lookup_in(env));
  REQUIRE_FALSE(read);
  CHECK(read.error().message.find("HORO_SIZE='four'") != std::string::npos);
}

TEST_CASE("an invalid port or nonce is refused with name and value") {
  auto env = as_map(kThird);
  env["HORO_MASTER_PORT"] = "65536";
  CHECK(horo::read_worker_identity(lookup_in(env))
            .error()
            .message.find("HORO_MASTER_PORT='65536' must be a whole number from 0 to 65535") !=
        std::string::npos);
  env = as_map(kThird);
  for (const char* wrong : {"", "x", "-1", "1x", "18446744073709551616"}) {
    env["HORO_BOARD_NONCE"] = wrong;
    CHECK(horo::read_worker_identity(lookup_in(env))
              .error()
              .message.find(fmt::format("HORO_BOARD_NONCE='{}'", wrong)) != std::string::npos);
  }
}

TEST_CASE("every variable that is written describes a rank") {
  for (const auto& [name, value] : horo::worker_environment(kThird))
    CHECK(horo::describes_rank(name));
  CHECK_FALSE(horo::describes_rank("PATH"));
}

TEST_CASE("a worker of an elastic job is told its number and its slot, and others are not") {
  CHECK(as_map(kThird).count("HORO_ELASTIC") == 0);
  CHECK(as_map(kThird).count("HORO_BOARD_SLOT") == 0);
  CHECK(as_map(kThird).count("HORO_MEMBERSHIP") == 0);
  auto worker = kThird;
  worker.elastic = true;
  worker.worker = 17;
  worker.board_slot = 5;
  worker.joins = true;
  worker.membership = "127.0.0.1:4711";
  const auto env = as_map(worker);
  CHECK(env.at("HORO_ELASTIC") == "1");
  CHECK(env.at("HORO_JOINS") == "1");
  CHECK(env.at("HOROVOD_ELASTIC") == "1");
  const auto read = horo::read_worker_identity(lookup_in(env));
  REQUIRE(read);
  CHECK((*read)->elastic);
  CHECK((*read)->worker == 17);
  CHECK((*read)->board_slot == 5);
  CHECK((*read)->joins);
  CHECK((*read)->membership == "127.0.0.1:4711");
  for (const auto& [name, value] : horo::worker_environment(worker))
    CHECK(horo::describes_rank(name));
}

TEST_CASE("a worker of an elastic job without number, slot or agent is refused") {
  auto env = as_map(kThird);
  env["HORO_ELASTIC"] = "1";
  CHECK(horo::read_worker_identity(lookup_in(env)).error().message.find("without HORO_WORKER") !=
        std::string::npos);
  env["HORO_WORKER"] = "0";
  CHECK(
      horo::read_worker_identity(lookup_in(env)).error().message.find("without HORO_BOARD_SLOT") !=
      std::string::npos);
  env["HORO_BOARD_SLOT"] = "3";
  CHECK(
      horo::read_worker_identity(lookup_in(env)).error().message.find("without HORO_MEMBERSHIP") !=
      std::string::npos);
  env["HORO_BOARD_SLOT"] = "1024";
  CHECK(horo::read_worker_identity(lookup_in(env))
            .error()
            .message.find("HORO_BOARD_SLOT='1024' must be a whole number from 0 to 1023") !=
        std::string::npos);
}
