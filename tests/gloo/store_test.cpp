// SPDX-License-Identifier: Apache-2.0
// Real processes that meet through our server with Gloo's own code, over TCP on loopback.
#include "runtime/backends/gloo/store.hpp"

#include <functional>
#include <memory>
#include <numeric>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>
#include <gloo/allreduce.h>
#include <gloo/math.h>

#include "base/kv/server/server.hpp"
#include "base/log.hpp"
#include "runtime/backends/gloo/mesh.hpp"

using horo::Errc;
using horo::Status;
using horo::kv::Server;
using horo::runtime::connect_mesh;
using horo::runtime::GlooStore;
using horo::runtime::MeshSpec;
namespace kv = horo::kv;

namespace {

constexpr auto kNet = std::chrono::seconds(30);  // For what must happen at once.

/// A server whose thread starts after the ranks have been forked.
struct Meeting {
  Meeting() : secret(*kv::make_secret()), loop(horo::Loop::make().value()) {
    server = kv::Server::start(*loop, secret, {}).value();
  }

  ~Meeting() {
    loop->post([this] { loop->stop(); });
    thread.join();
  }

  void serve() {
    thread = std::thread([this] { loop->run(); });
  }

  kv::Client client() const {
    return kv::Client::connect(server->address(), secret,
                               horo::Deadline::in(horo::SteadyClock::instance(), kNet))
        .value();
  }

  const kv::Secret secret;
  std::unique_ptr<horo::Loop> loop;
  std::unique_ptr<kv::Server> server;
  std::thread thread;
};

/// Runs `body` in a process of its own; its exit code is 0 if the body succeeds.
pid_t fork_rank(const std::function<Status()>& body) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  const auto status = body();
  if (!status) horo::log::error("test", "{}", status.error().message);
  _exit(status ? 0 : 1);
}

int exit_code(pid_t pid) {
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void sum_in_place(const std::shared_ptr<gloo::Context>& context, std::vector<float>& values) {
  gloo::AllreduceOptions options(context);
  options.setOutput(values.data(), values.size());
  options.setReduceFunction([](void* out, const void* a, const void* b, std::size_t n) {
    gloo::sum<float>(out, a, b, n);
  });
  gloo::allreduce(options);
}

Status sum_over(const std::shared_ptr<gloo::Context>& context) {
  std::vector<float> values(10000);
  std::iota(values.begin(), values.end(), static_cast<float>(context->rank));
  try {
    sum_in_place(context, values);
  } catch (const std::exception& error) {
    return horo::fail(Errc::io, "all-reduce: {}", error.what());
  }
  const auto n = static_cast<std::size_t>(context->size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto expected = static_cast<float>(n * i + n * (n - 1) / 2);
    if (values[i] != expected) {
      return horo::fail(Errc::mismatch, "element {} is {}, not {}", i, values[i], expected);
    }
  }
  return {};
}

MeshSpec spec_of(int rank, int size) {
  return {.rank = rank,
          .size = size,
          .prefix = "gloo/epoch1",
          .interface = "lo",
          .address = {},
          .timeout = kNet};
}

}  // namespace

TEST_CASE("two and three processes meet and all-reduce") {
  for (const int size : {2, 3}) {
    Meeting meeting;
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.push_back(fork_rank([&]() -> Status {
        auto client = meeting.client();
        HORO_TRY(const auto context, connect_mesh(client, spec_of(rank, size)));
        return sum_over(context);
      }));
    }
    meeting.serve();
    for (const pid_t pid : ranks) CHECK(exit_code(pid) == 0);
  }
}

TEST_CASE("a peer that does not come is named by its key") {
  Meeting meeting;
  const pid_t other = fork_rank([&]() -> Status {
    auto client = meeting.client();
    auto spec = spec_of(1, 3);
    spec.timeout = std::chrono::milliseconds(300);
    const auto context = connect_mesh(client, spec);
    if (context) return horo::fail(Errc::mismatch, "a mesh of 3 was made by 2");
    const auto& message = context.error().message;
    if (context.error().code == Errc::timed_out &&
        message.find("'gloo/epoch1/2'") != std::string::npos &&
        message.find("rank 1 of 3") != std::string::npos) {
      return {};
    }
    return horo::fail(Errc::mismatch, "unexpected: {}", message);
  });
  const pid_t present = fork_rank([&]() -> Status {
    auto client = meeting.client();
    auto spec = spec_of(0, 3);
    spec.timeout = std::chrono::milliseconds(300);
    return connect_mesh(client, spec) ? horo::fail(Errc::mismatch, "a mesh of 3 was made by 2")
                                      : Status{};
  });
  meeting.serve();
  CHECK(exit_code(other) == 0);
  CHECK(exit_code(present) == 0);
}

TEST_CASE("the store keeps Gloo's keys apart by prefix and its bytes as they are") {
  Meeting meeting;
  meeting.serve();
  auto client = meeting.client();
  GlooStore one(client, "one", kNet);
  GlooStore two(client, "two", std::chrono::milliseconds(20));
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
  Meeting meeting;
  meeting.serve();
  auto client = meeting.client();
  auto spec = spec_of(0, 1);
  spec.interface = "nosuch0";
  const auto context = connect_mesh(client, spec);
  REQUIRE_FALSE(context);
  CHECK(context.error().code == Errc::invalid_argument);
  CHECK(context.error().message.find("'nosuch0'") != std::string::npos);
  CHECK(connect_mesh(client, spec_of(2, 2)).error().code == Errc::invalid_argument);
}
