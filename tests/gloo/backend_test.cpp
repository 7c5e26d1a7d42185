// SPDX-License-Identifier: Apache-2.0
// Tests the module HORO_TEST_MODULE, gloo or tcp, between real processes over TCP on loopback. It
// is loaded in the way libhoro loads it. HORO_TEST_WIRE is what its messages call the network.
#include <algorithm>
#include <array>
#include <condition_variable>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <mutex>
#include <netinet/in.h>
#include <random>
#include <set>
#include <string>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runtime/backends/module.hpp"
#include "tests/support/random_buckets.hpp"
#include "tests/support/rank_processes.hpp"

using namespace horo;
using namespace horo::test;

namespace {

/// Lets a rank block without spinning, as the session does with a futex.
struct Bell {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t rung = 0;

  void ring() {
    const std::lock_guard lock(mutex);
    ++rung;
    changed.notify_all();
  }

  void wait_for(std::uint64_t seen) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(20), [&] { return rung > seen; });
  }
};

struct Loaded {
  Bell bell;
  std::unique_ptr<Backend> backend;
};

Result<std::unique_ptr<Loaded>> load(Communicator communicator) {
  auto loaded = std::make_unique<Loaded>();
  communicator.notify = [bell = &loaded->bell] { bell->ring(); };
  HORO_TRY(const auto* entry, load_usable_module(HORO_TEST_MODULE, HORO_TEST_MODULES));
  HORO_TRY(loaded->backend, entry->make(communicator));
  return loaded;
}

/// Waits until all buckets are done. Fails: as health(); timed_out if the backend never calls back.
Status finish(Loaded& loaded) {
  auto& backend = *loaded.backend;
  for (std::uint64_t seen = 0;;) {
    HORO_TRY_STATUS(backend.health());
    if (backend.completed() == backend.started()) return {};
    const auto before = seen;
    loaded.bell.wait_for(before);
    const std::lock_guard lock(loaded.bell.mutex);
    seen = loaded.bell.rung;
    if (seen == before && backend.health() && backend.completed() != backend.started())
      return fail(Errc::timed_out, "the backend was silent for 20 s");
  }
}

Status check_case(const Case& c, std::size_t rank) {
  for (const auto& t : c.tensors) {
    if (t.out[rank] != t.expected[rank])
      return fail(Errc::mismatch, "rank {}: wrong bytes from kind {} of {}", rank,
                  static_cast<int>(c.like.kind), name(c.like.dtype));
  }
  return {};
}

Status run_cases(const Communicator& communicator, std::vector<Case>& cases) {
  HORO_TRY(const auto loaded, load(communicator));
  const auto me = static_cast<std::size_t>(communicator.position);
  for (auto& c : cases) HORO_TRY_STATUS(loaded->backend->start(bucket_of(c, me)));
  HORO_TRY_STATUS(finish(*loaded));
  for (const auto& c : cases) HORO_TRY_STATUS(check_case(c, me));
  return {};
}

Bucket sum_of(std::vector<float>& values) {
  Bucket bucket{.like = {.elements = values.size()}};
  bucket.parts.push_back({.in = values.data(), .out = values.data(), .elements = values.size()});
  return bucket;
}

/// Sums one small bucket. Afterwards all ranks are connected.
Status sum_one(Loaded& loaded) {
  std::vector<float> one(1, 1);
  HORO_TRY_STATUS(loaded.backend->start(sum_of(one)));
  return finish(loaded);
}

/// After an error the buffer belongs to the caller: nothing may write to it.
Status lose_a_peer(Loaded& loaded, std::initializer_list<std::string_view> words) {
  std::vector<float> values(std::size_t{16} << 20U, 1);
  Status status;
  for (int i = 0; i < 1000 && status; ++i) {
    if (status = loaded.backend->start(sum_of(values)); status) status = finish(loaded);
  }
  if (status) return fail(Errc::mismatch, "no rank was reported lost");
  if (status.error().code != Errc::peer_lost) return status;
  for (const auto part : words) {
    if (status.error().message.find(part) == std::string::npos)
      return fail(Errc::mismatch, "the error does not say '{}': {}", part, status.error().message);
  }
  loaded.backend->abort();
  std::fill(values.begin(), values.end(), -7.0F);
  usleep(100'000);
  for (const auto value : values) {
    if (value != -7.0F) return fail(Errc::mismatch, "a buffer was touched after the error");
  }
  return {};
}

}  // namespace

namespace {

/// Every connection of this process closes when the process starts a program.
Status check_inheritance() {
  int connections = 0;
  for (int fd = 3; fd < 256; ++fd) {
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0 ||
        peer.sin_family != AF_INET)
      continue;
    ++connections;
    if ((fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0)
      return fail(Errc::mismatch, "descriptor {} is inherited", fd);
  }
  return connections >= 2 ? Status{} : fail(Errc::mismatch, "{} connections", connections);
}

}  // namespace

TEST_CASE("programs that a rank starts inherit none of its connections") {
  constexpr int kSize = 3;
  MeetingServer server;
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < kSize; ++rank) {
    ranks.push_back(fork_rank([&]() -> Status {
      RankClient client(server);
      HORO_TRY(const auto loaded, load(communicator_of(client, rank, kSize)));
      HORO_TRY_STATUS(sum_one(*loaded));
      return check_inheritance();
    }));
  }
  server.serve();
  for (const auto rank : ranks) CHECK(exit_code(rank) == 0);
}

TEST_CASE("one to seventeen processes run every kind of collective with every type and operation") {
  const char* given = std::getenv("HORO_TEST_SEED");
  const auto seed = given != nullptr ? std::stoul(given) : std::random_device{}();
  CAPTURE(seed);
  for (const int size : {1, 2, 3, 4, 17}) {
    std::mt19937_64 random(seed);
    Maker maker{random, static_cast<std::size_t>(size)};
    std::vector<Case> cases;
    for (int i = 0; i < (size > 4 ? 20 : 60); ++i) cases.push_back(maker.make());
    for (const auto dtype :
         {DType::f32, DType::i8}) {  // A bucket of several segments that uses a ring.
      Case c{.like = {.dtype = dtype}};
      c.tensors.push_back(maker.same_everywhere(c.like, 3'000'001));
      for (const auto& expected : c.tensors[0].expected)
        c.tensors[0].out.emplace_back(expected.size());
      cases.push_back(std::move(c));
    }
    MeetingServer server;
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.push_back(fork_rank([&]() -> Status {
        RankClient rank_client(server);
        return run_cases(communicator_of(rank_client, rank, size, 2), cases);
      }));
    }
    server.serve();
    for (const pid_t pid : ranks) CHECK(exit_code(pid) == 0);
  }
}

TEST_CASE("a bucket may have more elements than an int can count") {
  constexpr std::uint64_t kCount = (std::uint64_t{1} << 31U) + 5;
  MeetingServer server;
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.push_back(fork_rank([&]() -> Status {
      RankClient rank_client(server);
      HORO_TRY(const auto loaded, load(communicator_of(rank_client, rank, 2)));
      std::vector<std::uint8_t> values(kCount, static_cast<std::uint8_t>(rank + 1));
      Bucket bucket{.like = {.dtype = DType::u8, .elements = kCount}};
      bucket.parts.push_back({.in = values.data(), .out = values.data(), .elements = kCount});
      HORO_TRY_STATUS(loaded->backend->start(std::move(bucket)));
      while (loaded->backend->health() && loaded->backend->completed() == 0) usleep(10'000);
      HORO_TRY_STATUS(loaded->backend->health());
      for (const std::uint64_t at : {std::uint64_t{0}, kCount / 2, kCount - 1}) {
        if (values[at] != 3) return fail(Errc::mismatch, "element {} is {}", at, values[at]);
      }
      return {};
    }));
  }
  server.serve();
  for (const pid_t pid : ranks) CHECK(exit_code(pid) == 0);
}

TEST_CASE("after kill -9 of a rank the others get an error and may use their buffers") {
  constexpr int kSize = 3;
  MeetingServer server;
  int ready[2];
  REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < kSize; ++rank) {
    ranks.push_back(fork_rank([&]() -> Status {
      RankClient rank_client(server);
      HORO_TRY(const auto loaded, load(communicator_of(rank_client, rank, kSize)));
      HORO_TRY_STATUS(sum_one(*loaded));
      if (write(ready[1], "x", 1) != 1) return fail(Errc::io, "pipe");
      // The victim's neighbour sees the loss itself; a rank that learns it from another survivor
      // names that one.
      return lose_a_peer(*loaded, {"over " HORO_TEST_WIRE});
    }));
  }
  server.serve();
  for (int rank = 0; rank < kSize; ++rank) {
    char byte = 0;
    REQUIRE(read(ready[0], &byte, 1) == 1);
  }
  kill(ranks[1], SIGKILL);
  CHECK(exit_code(ranks[1]) == 128 + SIGKILL);
  CHECK(exit_code(ranks[0]) == 0);
  CHECK(exit_code(ranks[2]) == 0);
}

TEST_CASE("a stopped rank is reported by name after the timeout") {
  MeetingServer server;
  const pid_t stopped = fork_rank([&]() -> Status {
    RankClient rank_client(server);
    HORO_TRY(const auto loaded, load(communicator_of(rank_client, 1, 2)));
    HORO_TRY_STATUS(sum_one(*loaded));
    raise(SIGSTOP);
    return {};
  });
  const pid_t other = fork_rank([&]() -> Status {
    RankClient rank_client(server);
    auto communicator = communicator_of(rank_client, 0, 2);
    communicator.timeout = std::chrono::milliseconds(500);
    HORO_TRY(const auto loaded, load(communicator));
    HORO_TRY_STATUS(sum_one(*loaded));
    return lose_a_peer(*loaded, {"rank 1 ", "does not answer"});
  });
  server.serve();
  CHECK(exit_code(other) == 0);
  kill(stopped, SIGKILL);
  CHECK(exit_code(stopped) == 128 + SIGKILL);
}

TEST_CASE("abort returns while a peer is stopped in the middle of a bucket") {
  MeetingServer server;
  const pid_t stopped = fork_rank([&]() -> Status {
    RankClient rank_client(server);
    HORO_TRY(const auto loaded, load(communicator_of(rank_client, 1, 2)));
    HORO_TRY_STATUS(sum_one(*loaded));
    raise(SIGSTOP);
    return {};
  });
  const pid_t other = fork_rank([&]() -> Status {
    RankClient rank_client(server);
    HORO_TRY(const auto loaded, load(communicator_of(rank_client, 0, 2)));
    HORO_TRY_STATUS(sum_one(*loaded));
    std::vector<float> values(std::size_t{16} << 20U, 1);
    HORO_TRY_STATUS(loaded->backend->start(sum_of(values)));
    usleep(50'000);
    loaded->backend->abort();
    return {};
  });
  server.serve();
  CHECK(exit_code(other) == 0);
  kill(stopped, SIGKILL);
  CHECK(exit_code(stopped) == 128 + SIGKILL);
}

namespace {

/// The sockets that these processes have open, as the kernel's tables name them.
std::set<std::string> sockets_of(const std::vector<pid_t>& processes) {
  std::set<std::string> sockets;
  for (const pid_t pid : processes) {
    std::error_code gone;  // The process may end meanwhile.
    std::filesystem::directory_iterator at(fmt::format("/proc/{}/fd", pid), gone);
    for (; !gone && at != std::filesystem::directory_iterator(); at.increment(gone)) {
      std::error_code closed;
      const auto target = std::filesystem::read_symlink(at->path(), closed).string();
      if (target.starts_with("socket:[")) sockets.insert(target.substr(8, target.size() - 9));
    }
  }
  return sockets;
}

/// TCP ports at which these processes listen. Ports of other programs are left alone: other tests
/// that run at this time connect over TCP, too.
std::vector<int> listening_ports(const std::vector<pid_t>& processes) {
  const auto own = sockets_of(processes);
  std::vector<int> ports;
  std::ifstream table("/proc/self/net/tcp");
  std::string line;
  while (std::getline(table, line)) {
    unsigned slot = 0;
    unsigned address = 0;
    unsigned port = 0;
    unsigned state = 0;
    std::array<char, 32> inode{};
    if (std::sscanf(line.c_str(), " %u: %x:%x %*s %x %*s %*s %*s %*s %*s %31s", &slot, &address,
                    &port, &state, inode.data()) == 5 &&
        state == 0x0a && own.contains(inode.data()))
      ports.push_back(static_cast<int>(port));
  }
  return ports;
}

void send_garbage(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::string junk(4096, '\xa5');
    [[maybe_unused]] const auto sent = send(fd, junk.data(), junk.size(), MSG_NOSIGNAL);
  }
  close(fd);
}

}  // namespace

TEST_CASE("connections that send invalid bytes do not disturb connected ranks") {
  MeetingServer server;
  int ready[2];
  int go[2];
  REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
  REQUIRE(pipe2(go, O_CLOEXEC) == 0);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.push_back(fork_rank([&]() -> Status {
      RankClient rank_client(server);
      HORO_TRY(const auto loaded, load(communicator_of(rank_client, rank, 2)));
      HORO_TRY_STATUS(sum_one(*loaded));
      char byte = 0;
      if (write(ready[1], "x", 1) != 1 || read(go[0], &byte, 1) != 1) return fail(Errc::io, "pipe");
      return sum_one(*loaded);
    }));
  }
  server.serve();
  char byte = 0;
  for (int rank = 0; rank < 2; ++rank) REQUIRE(read(ready[0], &byte, 1) == 1);
  for (const int port : listening_ports(ranks)) send_garbage(port);
  REQUIRE(write(go[1], "xx", 2) == 2);
  for (const pid_t pid : ranks) CHECK(exit_code(pid) == 0);
}

TEST_CASE(
    "a foreign connection in place of a peer's, while the mesh is made, is an error and not a "
    "crash") {
  std::size_t disturbed = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    MeetingServer server;
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      ranks.push_back(fork_rank([&]() -> Status {
        RankClient rank_client(server);
        auto communicator = communicator_of(rank_client, rank, 3);
        communicator.start_timeout = communicator.timeout = std::chrono::seconds(2);
        // The last rank comes late, so the others still wait for its connection.
        if (rank == 2) usleep(300'000);
        const auto loaded = load(communicator);
        if (loaded) static_cast<void>(sum_one(**loaded));
        return {};
      }));
    }
    server.serve();
    for (int i = 0; i < 10; ++i) {
      usleep(30'000);
      const auto ports = listening_ports(ranks);
      disturbed += ports.size();
      for (const int port : ports) send_garbage(port);
    }
    for (const pid_t pid : ranks) CHECK(exit_code(pid) == 0);
  }
  CHECK(disturbed > 0);
}
