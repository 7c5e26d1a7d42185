// SPDX-License-Identifier: Apache-2.0
// Several hosts with boards of their own in one process, connected by a wire in memory.
#include "runtime/backends/hierarchical.hpp"

#include <random>
#include <thread>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runtime/backends/flat/flat_backend.hpp"
#include "runtime/backends/shm/shm_backend.hpp"
#include "runtime/coordinator/board.hpp"
#include "runtime/coordinator/host_memory.hpp"
#include "tests/support/memory_wire.hpp"
#include "tests/support/random_buckets.hpp"

using namespace horo;
using namespace horo::test;

namespace {

struct SimRank {
  std::unique_ptr<HostMemory> host;
  std::unique_ptr<Board> scatter_board;
  std::unique_ptr<Board> gather_board;
  FlatBackend* across = nullptr;
  std::unique_ptr<HierarchicalBackend> backend;
};

std::shared_ptr<Ether> ether_of(std::size_t size) {
  auto ether = std::make_shared<Ether>();
  ether->closed.resize(size);
  return ether;
}

std::unique_ptr<FlatBackend> flat(const std::shared_ptr<Ether>& ether, const Communicator& c) {
  return std::make_unique<FlatBackend>(
      std::make_unique<MemoryWire>(ether, c.position),
      Mesh{.position = c.position, .size = c.size(), .shares_hosts = true},
      FlatOptions{.name = "memory", .segment = 64 << 10U});
}

class SimHosts {
 public:
  SimHosts(const std::vector<int>& sizes, const HierarchicalOptions& options) {
    Communicator world{.name = "sim"};
    for (std::size_t h = 0; h < sizes.size(); ++h) {
      for (int l = 0; l < sizes[h]; ++l) {
        world.members.push_back(world.size());
        world.hosts.push_back(static_cast<int>(h));
      }
    }
    const auto all = ether_of(world.members.size());
    std::vector<std::shared_ptr<Ether>> slices;
    for (std::size_t l = 0; l < world.members.size(); ++l) slices.push_back(ether_of(sizes.size()));
    for (const int size : sizes) {
      const int fd = *make_board({.local_size = size, .nonce = 1});
      Members everybody;
      for (int l = 0; l < size; ++l) everybody.emplace_back(l);
      for (int l = 0; l < size; ++l, ++world.position) {
        const auto hierarchy = hierarchy_of(world).value();
        SimRank rank;
        rank.host = *HostMemory::attach(fd, LocalRank{l}, Rank{world.position}, {});
        rank.host->my_slot().state.store(RankState::attached);
        rank.host->my_rank().drive.store(drive::kAwake);
        rank.scatter_board = *Board::attach(*rank.host, 0, everybody);
        rank.gather_board = *Board::attach(*rank.host, 1, everybody);
        HierarchicalParts parts{.scatter = std::make_unique<ShmBackend>(*rank.scatter_board),
                                .gather = std::make_unique<ShmBackend>(*rank.gather_board),
                                .flat = flat(all, world)};
        if (const auto across = across_hosts(world, hierarchy)) {
          auto backend = flat(slices[static_cast<std::size_t>(l)], *across);
          rank.across = backend.get();
          parts.across = std::move(backend);
        }
        rank.backend = std::make_unique<HierarchicalBackend>(std::move(parts), hierarchy, options);
        ranks.push_back(std::move(rank));
      }
      close(fd);
    }
  }

  /// One thread drives all ranks: none of them may wait for another inside of progress().
  void settle(std::uint64_t buckets) {
    for (;;) {
      bool all = true;
      for (auto& rank : ranks) {
        rank.backend->progress();
        REQUIRE(rank.backend->health());
        all = all && rank.backend->completed() == buckets;
      }
      if (all) return;
      std::this_thread::yield();
    }
  }

  std::vector<SimRank> ranks;
};

}  // namespace

TEST_CASE("random buckets over even and uneven hosts come out as the reference says") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const std::vector<std::vector<int>> shapes = {{1}, {2, 2}, {1, 3}, {3, 2, 1}, {4, 4}};
  for (const auto& shape : shapes) {
    SimHosts hosts(shape, {.stretch = 64 + random() % 4096, .least = random() % 512});
    Maker maker{random, hosts.ranks.size()};
    std::vector<Case> cases;
    for (int i = 0; i < 40; ++i) cases.push_back(maker.make());
    for (std::size_t r = 0; r < hosts.ranks.size(); ++r) {
      for (auto& c : cases) REQUIRE(hosts.ranks[r].backend->start(bucket_of(c, r)));
    }
    hosts.settle(cases.size());
    for (const auto& c : cases) {
      CAPTURE(shape, name(c.like.kind), name(c.like.dtype), name(c.like.op), c.like.prescale);
      for (const auto& t : c.tensors) {
        for (std::size_t r = 0; r < hosts.ranks.size(); ++r) REQUIRE(t.out[r] == t.expected[r]);
      }
    }
  }
}

TEST_CASE("float16 results that fit do not overflow inside a host") {
  std::mt19937_64 random(1);
  const std::vector<std::vector<int>> shapes = {{2, 2}, {4, 3}, {2, 2, 2, 2}};
  for (const auto& shape : shapes) {
    SimHosts hosts(shape, {});
    auto cases = Maker{random, hosts.ranks.size()}.beyond_halves(1 << 16U);
    for (std::size_t r = 0; r < hosts.ranks.size(); ++r) {
      for (auto& c : cases) REQUIRE(hosts.ranks[r].backend->start(bucket_of(c, r)));
    }
    hosts.settle(cases.size());
    for (const auto& c : cases) {
      CAPTURE(shape, name(c.like.op), c.like.prescale, c.like.postscale);
      for (std::size_t r = 0; r < hosts.ranks.size(); ++r)
        REQUIRE(c.tensors[0].out[r] == c.tensors[0].expected[r]);
    }
  }
}

TEST_CASE("two hosts exchange each byte once in each direction") {
  constexpr std::uint64_t kCount = 1 << 20U;
  SimHosts hosts({2, 2}, {});
  std::vector<std::vector<float>> values(4, std::vector<float>(kCount, 1));
  for (std::size_t r = 0; r < 4; ++r) {
    Bucket bucket{.like = {.elements = kCount}};
    bucket.parts.push_back({.in = values[r].data(), .out = values[r].data(), .elements = kCount});
    REQUIRE(hosts.ranks[r].backend->start(std::move(bucket)));
  }
  hosts.settle(1);
  const auto from_host_0 = hosts.ranks[0].across->sent() + hosts.ranks[1].across->sent();
  CHECK(from_host_0 >= kCount * sizeof(float));
  CHECK(from_host_0 <= kCount * sizeof(float) * 102 / 100);
  for (const auto& value : values) REQUIRE(value == std::vector<float>(kCount, 4));
}

TEST_CASE("as many ranks own slices as the smallest host has") {
  Communicator world{.members = {0, 1, 2, 3, 4, 5}, .hosts = {0, 0, 0, 1, 1, 2}, .name = "x"};
  world.position = 1;
  auto hierarchy = hierarchy_of(world).value();
  CHECK(hierarchy.hosts == 3);
  CHECK(hierarchy.owners == 1);
  CHECK_FALSE(hierarchy.owns());
  CHECK_FALSE(across_hosts(world, hierarchy));
  world.position = 3;
  hierarchy = hierarchy_of(world).value();
  const auto across = across_hosts(world, hierarchy).value();
  CHECK(across.members == std::vector<int>{0, 3, 5});
  CHECK(across.position == 1);
  world.hosts = {0, 1, 0, 1, 0, 1};
  hierarchy = hierarchy_of(world).value();  // Ranks dealt out to the hosts in turn.
  CHECK(hierarchy.hosts == 2);
  CHECK(hierarchy.owners == 3);
  CHECK(hierarchy.local_rank == 1);
  CHECK(across_hosts(world, hierarchy)->members == std::vector<int>{2, 3});
}

TEST_CASE("abort leaves nothing on its way") {
  SimHosts hosts({2, 2}, {.stretch = 1024});
  std::vector<float> values(100000, 1);
  Bucket bucket{.like = {.elements = values.size()}};
  bucket.parts.push_back({.in = values.data(), .out = values.data(), .elements = values.size()});
  REQUIRE(hosts.ranks[0].backend->start(std::move(bucket)));
  hosts.ranks[0].backend->progress();
  hosts.ranks[0].backend->abort();
  CHECK_FALSE(hosts.ranks[0].backend->progress());
  CHECK(hosts.ranks[0].backend->completed() == 0);
}
