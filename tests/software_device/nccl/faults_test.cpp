// SPDX-License-Identifier: Apache-2.0
// The software NCCL fails when it is asked to, and finds what NCCL would not notice.
#include <barrier>
#include <csignal>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/software_device/nccl/loaded_nccl.hpp"
#include "tests/software_device/nccl/plan.hpp"

using horo::software_nccl::kInProgress;
using horo::software_nccl::kInvalidArgument;
using horo::software_nccl::kInvalidUsage;
using horo::software_nccl::kRemoteError;
using horo::software_nccl::kSuccess;
using horo::software_nccl::kUnhandledCudaError;
using horo::tests::NcclId;
using horo::tests::NcclRank;
using horo::tests::run_ranks;
using horo::tests::SoftwareDevice;
using horo::tests::SoftwareNccl;

namespace {

constexpr int kFloat = 7;
constexpr int kInt32 = 2;
constexpr int kSum = 0;
constexpr std::size_t kCount = 100;

bool found(const std::string& findings, const std::string& part) {
  UNSCOPED_INFO(findings);
  return findings.find(part) != std::string::npos;
}

float* floats(NcclRank& rank) {
  return rank.put(std::vector<float>(kCount, 1));
}

/// Blocks: until the communicator has an error.
int await_error(const SoftwareNccl& nccl, NcclRank& rank) {
  int error = kSuccess;
  while (error == kSuccess) {
    HORO_CHECK(nccl.async_error(rank.comm, &error) == kSuccess);
    std::this_thread::yield();
  }
  return error;
}

/// Ends the communicator and what it has started.
void abort(const SoftwareNccl& nccl, NcclRank& rank) {
  HORO_CHECK(nccl.abort(rank.comm) == kSuccess);
  rank.comm = nullptr;
  rank.drain();
}

int sum(const SoftwareNccl& nccl, NcclRank& rank, float* memory, std::size_t count = kCount) {
  return nccl.all_reduce(memory, memory, count, kFloat, kSum, rank.comm, rank.stream);
}

/// The beginning of ncclConfig_t.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 22809;
  int blocking = 0;
};

}  // namespace

TEST_CASE("calls of the software NCCL fail on demand") {
  const SoftwareDevice software("devices=2");
  const SoftwareNccl nccl;
  SECTION("a call") {
    nccl.plan("fail=ncclAllReduce@0:1");
    run_ranks(software, nccl, 2, [&](NcclRank& rank) {
      HORO_CHECK(sum(nccl, rank, floats(rank)) == kUnhandledCudaError);
    });
  }
  SECTION("a call in a group, which then starts nothing") {
    nccl.plan("fail=ncclBroadcast@0:1");
    run_ranks(software, nccl, 2, [&](NcclRank& rank) {
      auto* memory = floats(rank);
      HORO_CHECK(nccl.group_start() == kSuccess);
      HORO_CHECK(sum(nccl, rank, memory) == kSuccess);
      HORO_CHECK(nccl.broadcast(memory, memory, kCount, kFloat, 0, rank.comm, rank.stream) ==
                 kUnhandledCudaError);
      HORO_CHECK(nccl.group_end() == kUnhandledCudaError);
      HORO_CHECK(rank.fetch(memory, 1).front() == 1);
    });
  }
  SECTION("the version") {
    nccl.plan("version=22700");
    int version = 0;
    CHECK(nccl.get_version(&version) == kSuccess);
    CHECK(version == 22700);
  }
  CHECK(nccl.findings().empty());
}

TEST_CASE("launches of the software NCCL fail and hang on demand, and an abort ends them") {
  const SoftwareDevice software("devices=2");
  const SoftwareNccl nccl;
  SECTION("an asynchronous error") {
    nccl.plan("async=1:3");
    std::atomic<int> failed{0};
    run_ranks(software, nccl, 2, [&](NcclRank& rank) {
      HORO_CHECK(sum(nccl, rank, floats(rank)) == kSuccess);
      int error = kSuccess;
      // One of the two launches is the first.
      while (error == kSuccess && failed == 0)
        HORO_CHECK(nccl.async_error(rank.comm, &error) == kSuccess);
      if (error != kSuccess) failed = error;
      HORO_CHECK(!rank.idle());
      abort(nccl, rank);
    });
    CHECK(failed == 3);
  }
  SECTION("a launch that never ends") {
    nccl.plan("hang=1");
    run_ranks(software, nccl, 2, [&](NcclRank& rank) {
      HORO_CHECK(sum(nccl, rank, floats(rank)) == kSuccess);
      HORO_CHECK(!rank.idle());
      abort(nccl, rank);
    });
  }
  CHECK(nccl.findings().empty());
}

TEST_CASE("a broken device ends the launches that wait on it") {
  const SoftwareDevice software("devices=2");
  const SoftwareNccl nccl;
  std::barrier started(2);
  run_ranks(software, nccl, 2, [&](NcclRank& rank) {
    auto* memory = floats(rank);
    rank.drain();
    if (rank.rank == 0) HORO_CHECK(sum(nccl, rank, memory) == kSuccess);
    started.arrive_and_wait();
    if (rank.rank == 1) {
      const std::uint8_t byte = 1;
      software.plan("devices=2 async=1:719");
      static_cast<void>(rank.device->copy(memory, &byte, 1, rank.stream));
    }
    while (software.pending() != 0) std::this_thread::yield();
    abort(nccl, rank);
  });
  software.plan("devices=2");
}

TEST_CASE("an initialisation that does not block is in progress until all ranks have joined") {
  const SoftwareDevice software("devices=2");
  const SoftwareNccl nccl;
  NcclId id;
  REQUIRE(nccl.get_unique_id(&id) == kSuccess);
  const Config config;
  NcclRank first(software, 0, 0);
  REQUIRE(nccl.init_with_config(&first.comm, 2, id, 0, &config) == kInProgress);
  int error = kSuccess;
  REQUIRE(nccl.async_error(first.comm, &error) == kSuccess);
  CHECK(error == kInProgress);
  SECTION("all join") {
    std::thread([&] {
      NcclRank second(software, 1, 1);
      HORO_CHECK(nccl.init(&second.comm, 2, id, 1) == kSuccess);
    }).join();
    while (error == kInProgress) HORO_CHECK(nccl.async_error(first.comm, &error) == kSuccess);
    CHECK(error == kSuccess);
  }
  SECTION("a rank is missing, and the one that waits is aborted") {
    CHECK(nccl.abort(first.comm) == kSuccess);
    CHECK(access((std::string("/dev/shm/") + id.bytes.data()).c_str(), F_OK) != 0);
  }
  CHECK(nccl.findings().empty());
}

TEST_CASE("a peer whose process is killed is an error over a network, and a hang within a host") {
  const bool remote = GENERATE(true, false);
  CAPTURE(remote);
  NcclId id;
  const std::string name = "horo-nccl-killed-" + std::to_string(getpid()) + (remote ? "r" : "");
  std::copy(name.begin(), name.end(), id.bytes.begin());
  const pid_t child = fork();
  if (child == 0) {
    const SoftwareDevice software("devices=2");
    const SoftwareNccl nccl;
    NcclRank rank(software, 1, 1);
    if (nccl.init(&rank.comm, 2, id, 1) != kSuccess) _exit(1);
    raise(SIGKILL);
  }
  int outcome = 0;
  std::thread([&] {
    // Also this rank is a process of its own, so that the next test forks before it has threads.
    const pid_t own = fork();
    if (own == 0) {
      const SoftwareDevice software("devices=2");
      const SoftwareNccl nccl(remote ? "remote=1" : "");
      NcclRank rank(software, 0, 0);
      bool right = nccl.init(&rank.comm, 2, id, 0) == kSuccess;
      right = right && sum(nccl, rank, floats(rank)) == kSuccess;
      if (remote) right = right && await_error(nccl, rank) == kRemoteError;
      right = right && !rank.idle();
      abort(nccl, rank);
      _exit(right ? 0 : 1);
    }
    waitpid(own, &outcome, 0);
  }).join();
  CHECK(outcome == 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
}

TEST_CASE("ranks that use communicators in different orders are found") {
  const SoftwareDevice software("devices=2");
  const SoftwareNccl nccl;
  SECTION("two operations of one communicator") {
    run_ranks(software, nccl, 2, [&](NcclRank& rank) {
      auto* memory = floats(rank);
      if (rank.rank == 0) HORO_CHECK(sum(nccl, rank, memory) == kSuccess);
      HORO_CHECK(nccl.broadcast(memory, memory, 10, kInt32, 0, rank.comm, rank.stream) == kSuccess);
      if (rank.rank == 1) HORO_CHECK(sum(nccl, rank, memory) == kSuccess);
      HORO_CHECK(await_error(nccl, rank) == kInvalidUsage);
      abort(nccl, rank);
    });
    CHECK(found(nccl.findings(), "all-reduce of 100 elements of type 7"));
    CHECK(found(nccl.findings(), "broadcast of 10 elements of type 2"));
  }
  SECTION("two operations that differ in their length only") {
    run_ranks(software, nccl, 2, [&](NcclRank& rank) {
      auto* memory = floats(rank);
      HORO_CHECK(sum(nccl, rank, memory, rank.rank == 0 ? 10 : 20) == kSuccess);
      HORO_CHECK(await_error(nccl, rank) == kInvalidUsage);
      abort(nccl, rank);
    });
    CHECK(found(nccl.findings(), "all-reduce of 10 elements"));
  }
}

TEST_CASE("ranks that use two communicators on one device in two orders are found") {
  const SoftwareDevice software("devices=2");
  const SoftwareNccl nccl;
  {
    NcclId id;
    REQUIRE(nccl.get_unique_id(&id) == kSuccess);
    std::barrier ready(2);
    run_ranks(software, nccl, 2, [&](NcclRank& rank) {
      void* const first = rank.comm;
      void* second = nullptr;
      HORO_CHECK(nccl.init(&second, 2, id, rank.rank) == kSuccess);
      ready.arrive_and_wait();
      const auto other = *rank.device->make_stream();
      auto* one = floats(rank);
      auto* two = floats(rank);
      rank.drain();
      const auto start_first = [&] {
        return nccl.all_reduce(one, one, kCount, kFloat, kSum, first, rank.stream);
      };
      const auto start_second = [&] {
        return nccl.all_reduce(two, two, kCount, kFloat, kSum, second, other);
      };
      HORO_CHECK((rank.rank == 0 ? start_first() : start_second()) == kSuccess);
      HORO_CHECK((rank.rank == 0 ? start_second() : start_first()) == kSuccess);
      HORO_CHECK(await_error(nccl, rank) == kInvalidUsage);
      HORO_CHECK(nccl.abort(second) == kSuccess);
      abort(nccl, rank);
    });
    CHECK(found(nccl.findings(), "two communicators are used in two orders"));
  }
}

TEST_CASE("three communicators that are used in a circle of orders hang as on a GPU") {
  const SoftwareDevice software("devices=3");
  const SoftwareNccl nccl;
  std::array<NcclId, 3> ids;
  for (auto& id : ids) REQUIRE(nccl.get_unique_id(&id) == kSuccess);
  std::barrier together(3);
  run_ranks(software, nccl, 3, [&](NcclRank& rank) {
    // Number r is of ranks r and r + 1. Each rank starts its own first.
    const int own = rank.rank;
    const int before = (own + 2) % 3;
    std::array<void*, 2> pair{};
    const auto join = [&](int number, void** comm) {
      const int place = (own - number + 3) % 3;
      HORO_CHECK(nccl.init(comm, 2, ids.at(static_cast<std::size_t>(number)), place) == kSuccess);
    };
    // The first two wait for each other, and the third for both.
    join(own == 2 ? before : own, &pair.at(own == 2 ? 1 : 0));
    join(own == 2 ? own : before, &pair.at(own == 2 ? 0 : 1));
    auto* const memory = floats(rank);
    rank.drain();
    for (auto* const comm : pair) {
      HORO_CHECK(nccl.all_reduce(memory, memory, kCount, kFloat, kSum, comm, rank.stream) ==
                 kSuccess);
    }
    together.arrive_and_wait();
    HORO_CHECK(!rank.idle());
    together.arrive_and_wait();
    for (auto* const comm : pair) HORO_CHECK(nccl.abort(comm) == kSuccess);
    rank.drain();
  });
  CHECK(nccl.findings().empty());
}

TEST_CASE("a device with room for one launch runs a second one when the first has ended") {
  const SoftwareDevice software("devices=2");
  const SoftwareNccl nccl("room=1");
  NcclId id;
  REQUIRE(nccl.get_unique_id(&id) == kSuccess);
  const bool ordered = GENERATE(true, false);
  std::barrier together(2);
  run_ranks(software, nccl, 2, [&](NcclRank& rank) {
    void* second = nullptr;
    HORO_CHECK(nccl.init(&second, 2, id, rank.rank) == kSuccess);
    auto* const one = floats(rank);
    auto* const two = floats(rank);
    rank.drain();
    const auto start = [&](void* comm, float* memory) {
      HORO_CHECK(nccl.all_reduce(memory, memory, kCount, kFloat, kSum, comm, rank.stream) ==
                 kSuccess);
    };
    const bool first_one = ordered || rank.rank == 0;
    start(first_one ? rank.comm : second, one);
    start(first_one ? second : rank.comm, two);
    together.arrive_and_wait();
    if (ordered) {
      rank.drain();
    } else {
      HORO_CHECK(!rank.idle());
    }
    together.arrive_and_wait();
    HORO_CHECK(nccl.abort(second) == kSuccess);
    abort(nccl, rank);
  });
  CHECK(nccl.findings().empty());
}

TEST_CASE("ranks that share a device or a number are found when they join") {
  const SoftwareDevice software("devices=2");
  const SoftwareNccl nccl;
  NcclId id;
  REQUIRE(nccl.get_unique_id(&id) == kSuccess);
  std::array<int, 2> results{};
  const auto join = [&](int rank) {
    NcclRank own(software, rank, 0);
    results.at(static_cast<std::size_t>(rank)) = nccl.init(&own.comm, 2, id, rank);
  };
  std::thread other([&] { join(1); });
  join(0);
  other.join();
  CHECK(results == std::array<int, 2>{kInvalidUsage, kInvalidUsage});
  CHECK(found(nccl.findings(), "ranks 0 and 1 of communicator"));
}

TEST_CASE("a communicator that is used when it has ended, or ends too early, is found") {
  const SoftwareDevice software("devices=2");
  const SoftwareNccl nccl;
  std::barrier both(2);
  const bool aborts = GENERATE(true, false);
  run_ranks(software, nccl, 2, [&](NcclRank& rank) {
    auto* memory = floats(rank);
    rank.drain();
    // Without the peer the launch cannot end.
    if (rank.rank == 0) HORO_CHECK(sum(nccl, rank, memory) == kSuccess);
    both.arrive_and_wait();
    HORO_CHECK((aborts ? nccl.abort : nccl.destroy)(rank.comm) == kSuccess);
    HORO_CHECK(sum(nccl, rank, memory) == kInvalidArgument);
    both.arrive_and_wait();
    rank.comm = nullptr;
  });
  const std::string call = aborts ? "ncclCommAbort" : "ncclCommDestroy";
  CHECK(found(nccl.findings(), "ncclAllReduce of a communicator that " + call + " has ended"));
  CHECK(found(nccl.findings(), "ncclCommDestroy with 1 launches that have not run") == !aborts);
}

TEST_CASE("misuse of groups is found") {
  const SoftwareDevice software("devices=2");
  const SoftwareNccl nccl;
  SECTION("an end without a start") {
    CHECK(nccl.group_end() == kInvalidUsage);
    CHECK(found(nccl.findings(), "ncclGroupEnd without ncclGroupStart"));
  }
  SECTION("a start without an end") {
    std::thread([&] { nccl.group_start(); }).join();
    CHECK(found(nccl.findings(), "a thread ended between"));
  }
  SECTION("a communicator that ends inside") {
    run_ranks(software, nccl, 2, [&](NcclRank& rank) {
      auto* memory = floats(rank);
      HORO_CHECK(nccl.group_start() == kSuccess);
      HORO_CHECK(sum(nccl, rank, memory) == kSuccess);
      HORO_CHECK(nccl.abort(rank.comm) == kSuccess);
      HORO_CHECK(nccl.group_end() == kInvalidUsage);
      rank.comm = nullptr;
    });
    CHECK(found(nccl.findings(), "ncclCommAbort between"));
  }
  SECTION("two streams for one communicator") {
    run_ranks(software, nccl, 2, [&](NcclRank& rank) {
      auto* memory = floats(rank);
      const auto other = *rank.device->make_stream();
      HORO_CHECK(nccl.group_start() == kSuccess);
      HORO_CHECK(sum(nccl, rank, memory) == kSuccess);
      HORO_CHECK(nccl.all_reduce(memory, memory, 1, kFloat, kSum, rank.comm, other) ==
                 kInvalidUsage);
      HORO_CHECK(nccl.group_end() == kInvalidUsage);
    });
    CHECK(found(nccl.findings(), "on two streams in one group"));
  }
}

TEST_CASE("wrong arguments and memory of the software NCCL's calls are found") {
  const SoftwareDevice software("devices=2");
  const SoftwareNccl nccl;
  SECTION("a type that there is not") {
    run_ranks(software, nccl, 2, [&](NcclRank& rank) {
      HORO_CHECK(nccl.all_reduce(nullptr, nullptr, 1, 77, kSum, rank.comm, rank.stream) ==
                 kInvalidArgument);
    });
    CHECK(found(nccl.findings(), "ncclAllReduce with type 77"));
  }
  SECTION("a stream of another device") {
    run_ranks(software, nccl, 2, [&](NcclRank& rank) {
      const auto other = software.open(1 - rank.rank);
      HORO_CHECK(nccl.all_reduce(nullptr, nullptr, 1, kFloat, kSum, rank.comm,
                                 *other->make_stream()) == kInvalidArgument);
    });
    CHECK(found(nccl.findings(), "is used on a stream of device"));
  }
}

TEST_CASE("a message of another length than its receiver expects is found") {
  const SoftwareDevice software("devices=2");
  const SoftwareNccl nccl;
  {
    run_ranks(software, nccl, 2, [&](NcclRank& rank) {
      auto* memory = floats(rank);
      if (rank.rank == 0) {
        HORO_CHECK(nccl.send(memory, 5, kFloat, 1, rank.comm, rank.stream) == kSuccess);
        rank.drain();
      } else {
        HORO_CHECK(nccl.receive(memory, 6, kFloat, 0, rank.comm, rank.stream) == kSuccess);
        HORO_CHECK(await_error(nccl, rank) == kInvalidUsage);
        abort(nccl, rank);
      }
    });
    CHECK(found(nccl.findings(), "rank 0 sends message of 5 elements"));
  }
}

TEST_CASE("memory that a launch of the software NCCL must not use is found") {
  const SoftwareDevice software("devices=2");
  const SoftwareNccl nccl;
  SECTION("host memory") {
    run_ranks(software, nccl, 2, [&](NcclRank& rank) {
      std::vector<float> host(kCount);
      HORO_CHECK(sum(nccl, rank, host.data()) == kUnhandledCudaError);
      abort(nccl, rank);
    });
    CHECK(found(software.findings(), "which is not memory of a device"));
  }
  SECTION("memory that is not ready yet") {
    run_ranks(software, nccl, 2, [&](NcclRank& rank) {
      auto* memory = floats(rank);
      const auto other = *rank.device->make_stream();
      HORO_CHECK(nccl.all_reduce(memory, memory, kCount, kFloat, kSum, rank.comm, other) ==
                 kSuccess);
      horo::tests::fetch(*rank.device, memory, 4, other);
    });
    CHECK(found(software.findings(), "not ordered"));
  }
  SECTION("memory that is freed in use") {
    std::barrier both(2);
    run_ranks(software, nccl, 2, [&](NcclRank& rank) {
      auto* memory = floats(rank);
      rank.drain();
      if (rank.rank == 0) {
        HORO_CHECK(sum(nccl, rank, memory) == kSuccess);
        rank.device->free(memory);
      }
      both.arrive_and_wait();
      if (rank.rank == 1) HORO_CHECK(sum(nccl, rank, memory) == kSuccess);
      rank.drain();
    });
    CHECK(found(software.findings(), "freed in use"));
  }
}
