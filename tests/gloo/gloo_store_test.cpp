// SPDX-License-Identifier: Apache-2.0
// Gloo's own code runs its rendezvous through our server.
#include "runtime/backends/gloo/gloo_store.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

#include "runtime/backends/gloo/gloo_mesh.hpp"
#include "runtime/backends/gloo/gloo_transport.hpp"
#include "runtime/backends/hierarchical/gloo_reach.hpp"
#include "tests/support/rank_processes.hpp"

using namespace horo;
using namespace horo::test;
using horo::runtime::connect_mesh;
using horo::runtime::GlooStore;

TEST_CASE("the error names the key of a peer that does not come") {
  MeetingServer server;
  const auto lacks_one = [&](int position) -> Status {
    RankClient rank_client(server);
    auto communicator = communicator_of(rank_client, position, 3);
    communicator.start_timeout = std::chrono::milliseconds(300);
    const auto context = connect_mesh(communicator);
    if (context) return fail(Errc::mismatch, "a mesh of 3 was made by 2");
    const auto& error = context.error();
    if (error.code != Errc::timed_out) return fail(Errc::mismatch, "{}", error.message);
    // The second rank waits for the third. The first may see the second end before that.
    if (position == 0 || (error.message.find("'gloo/epoch1/2'") != std::string::npos &&
                          error.message.find("rank 1 of 3") != std::string::npos))
      return {};
    return fail(Errc::mismatch, "unexpected: {}", error.message);
  };
  const pid_t other = fork_rank([&] { return lacks_one(1); });
  const pid_t present = fork_rank([&] { return lacks_one(0); });
  server.serve();
  CHECK(exit_code(other) == 0);
  CHECK(exit_code(present) == 0);
}

TEST_CASE("the store keeps Gloo's keys apart by prefix and its bytes as they are") {
  MeetingServer server;
  server.serve();
  RankClient rank_client(server);
  GlooStore one(rank_client.keys, "one", kTestTimeout);
  GlooStore two(rank_client.keys, "two", std::chrono::milliseconds(20));
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

namespace {

/// Counts the bytes of the values that a rank reads.
class CountingStore final : public horo::runtime::RendezvousStore {
 public:
  explicit CountingStore(horo::runtime::RendezvousStore& store) : store_(store) {}

  Status set(std::string_view key, std::string_view value, Deadline deadline) override {
    return store_.set(key, value, deadline);
  }

  Result<std::string> get(std::string_view key, Deadline deadline) override {
    auto value = store_.get(key, deadline);
    if (value) read += value->size();
    return value;
  }

  std::size_t read = 0;

 private:
  horo::runtime::RendezvousStore& store_;
};

}  // namespace

TEST_CASE("Gloo reads as many bytes from the store as its limit counts") {
  constexpr int kRanks = 4;
  MeetingServer server;
  const auto counts = [&](int position) -> Status {
    RankClient rank_client(server);
    CountingStore counting(rank_client.keys);
    auto communicator = communicator_of(rank_client, position, kRanks);
    communicator.address = "127.0.0.1";
    communicator.meeting = &counting;
    HORO_TRY(const auto context, connect_mesh(communicator));
    // Besides addresses Gloo reads the host names of lower ranks.
    const auto more =
        static_cast<double>(counting.read) * kRanks / horo::runtime::gloo_store_bytes(kRanks);
    if (more >= 1 && more < 1.5) return {};
    return fail(Errc::mismatch, "{} bytes were read by a rank", counting.read);
  };
  std::vector<pid_t> ranks;
  for (int r = 0; r < kRanks; ++r) ranks.push_back(fork_rank([&, r] { return counts(r); }));
  server.serve();
  for (const pid_t rank : ranks) CHECK(exit_code(rank) == 0);
}

TEST_CASE("an interface or position that does not exist is refused by name") {
  MeetingServer server;
  server.serve();
  RankClient rank_client(server);
  auto communicator = communicator_of(rank_client, 0, 1);
  communicator.interface = "nosuch0";
  const auto context = connect_mesh(communicator);
  REQUIRE_FALSE(context);
  CHECK(context.error().code == Errc::invalid_argument);
  CHECK(context.error().message.find("'nosuch0'") != std::string::npos);
  communicator.position = 2;
  CHECK(connect_mesh(communicator).error().code == Errc::invalid_argument);
}

TEST_CASE("a message that has arrived in part ends at once when its connection does") {
  constexpr std::size_t kBytes = std::size_t{256} << 20U;
  MeetingServer server;
  const pid_t sender = fork_rank([&]() -> Status {
    RankClient rank_client(server);
    HORO_TRY(auto context, connect_mesh(communicator_of(rank_client, 0, 2)));
    horo::runtime::GlooTransport transport(std::move(context), {0, 1}, {});
    std::vector<std::byte> values(kBytes, std::byte{1});
    HORO_TRY(const auto message,
             transport.send({.peer = 1, .tag = 5, .at = values.data(), .bytes = kBytes}));
    return message->wait();
  });
  const pid_t receiver = fork_rank([&]() -> Status {
    RankClient rank_client(server);
    HORO_TRY(auto context, connect_mesh(communicator_of(rank_client, 1, 2)));
    // No timeout: without a word from Gloo this waits for ever.
    horo::runtime::GlooTransport transport(std::move(context), {0, 1}, {});
    std::vector<std::byte> values(kBytes);
    HORO_TRY(const auto message,
             transport.receive({.peer = 0, .tag = 5, .at = values.data(), .bytes = kBytes}));
    std::atomic_ref first(values.front());
    while (first.load() == std::byte{0}) std::this_thread::yield();
    // The sender would take its time to run and to end itself, and might be done before.
    kill(sender, SIGKILL);
    const auto status = message->wait();
    if (status) return fail(Errc::mismatch, "the message was complete");
    if (status.error().code == Errc::peer_lost &&
        status.error().message.find("rank 0 does not answer over Gloo") != std::string::npos)
      return {};
    return fail(Errc::mismatch, "unexpected: {}", status.error().message);
  });
  server.serve();
  CHECK(exit_code(sender) == 128 + SIGKILL);
  CHECK(exit_code(receiver) == 0);
}

TEST_CASE("a message that is complete when its connection ends is received") {
  MeetingServer server;
  const pid_t sender = fork_rank([&]() -> Status {
    RankClient rank_client(server);
    HORO_TRY(auto context, connect_mesh(communicator_of(rank_client, 0, 2)));
    horo::runtime::GlooTransport transport(std::move(context), {0, 1}, {});
    for (std::uint64_t tag = 0; tag < 200; ++tag) {
      auto value = static_cast<std::byte>(tag);
      HORO_TRY(const auto message,
               transport.send({.peer = 1, .tag = tag, .at = &value, .bytes = 1}));
      HORO_TRY_STATUS(message->wait());
    }
    return {};
  });
  const pid_t receiver = fork_rank([&]() -> Status {
    RankClient rank_client(server);
    HORO_TRY(auto context, connect_mesh(communicator_of(rank_client, 1, 2)));
    horo::runtime::GlooTransport transport(std::move(context), {0, 1}, {});
    std::array<std::byte, 200> values{};
    std::vector<std::unique_ptr<horo::runtime::PendingMessage>> messages;
    for (std::uint64_t tag = 0; tag < values.size(); ++tag) {
      HORO_TRY(auto message,
               transport.receive({.peer = 0, .tag = tag, .at = &values[tag], .bytes = 1}));
      messages.push_back(std::move(message));
    }
    // The sender has closed its connection before most of these waits begin.
    if (auto last = messages.back()->wait(); !last) return last;
    for (std::uint64_t tag = 0; tag + 1 < values.size(); ++tag) {
      HORO_TRY_STATUS(messages[tag]->wait());
      if (values[tag] != static_cast<std::byte>(tag)) return fail(Errc::mismatch, "wrong bytes");
    }
    return {};
  });
  server.serve();
  CHECK(exit_code(sender) == 0);
  CHECK(exit_code(receiver) == 0);
}
