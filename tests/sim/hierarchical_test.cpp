// SPDX-License-Identifier: Apache-2.0
// Several hosts with boards of their own in one process, connected by a wire in memory.
#include "runtime/backends/hierarchical/hierarchical.hpp"

#include <random>
#include <thread>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runtime/backends/flat/flat_backend.hpp"
#include "runtime/backends/hierarchical/path_backend.hpp"
#include "runtime/backends/shm/shm_backend.hpp"
#include "runtime/host/host_memory.hpp"
#include "runtime/host/set_region.hpp"
#include "tests/support/memory_transport.hpp"
#include "tests/support/random_buckets.hpp"

using namespace horo;
using namespace horo::test;

namespace {

struct SimRank {
  std::unique_ptr<HostMemory> host;
  std::unique_ptr<SetRegion> scatter_rings;
  std::unique_ptr<SetRegion> gather_rings;
  FlatBackend* across = nullptr;
  std::unique_ptr<Backend> backend;
};

std::shared_ptr<Ether> ether_of(std::size_t size) {
  auto ether = std::make_shared<Ether>();
  ether->closed.resize(size);
  return ether;
}

std::unique_ptr<FlatBackend> flat(const std::shared_ptr<Ether>& ether, const Communicator& c) {
  return std::make_unique<FlatBackend>(
      std::make_unique<MemoryTransport>(ether, c.position),
      Mesh{.position = c.position, .size = c.size(), .shares_hosts = true},
      FlatOptions{.name = "memory", .segment = 64 << 10U});
}

struct Limits {
  std::uint64_t stretch = kStretchBytes;
  std::uint64_t least = std::uint64_t{64} << 10U;  ///< Buckets that are smaller are moved whole.
};

/// The rank at `world.position`, which is local rank `local` on the board `fd`.
SimRank make_rank(int fd, int local, const Communicator& world, const std::shared_ptr<Ether>& all,
                  const std::shared_ptr<Ether>& slices, const Limits& limits) {
  const auto hierarchy = hierarchy_of(world).value();
  Members everybody;
  for (int l = 0; l < hierarchy.local_ranks; ++l) everybody.emplace_back(l);
  SimRank rank;
  rank.host = *HostMemory::attach(fd, LocalRank{local}, Rank{world.position}, {});
  rank.host->slot(rank.host->me()).state.store(RankState::attached);
  rank.host->waker().say_awake();
  rank.scatter_rings = *SetRegion::attach(*rank.host, 0, everybody);
  rank.gather_rings = *SetRegion::attach(*rank.host, 1, everybody);
  HierarchicalParts parts{.scatter = std::make_unique<ShmBackend>(*rank.scatter_rings),
                          .across = nullptr,
                          .gather = std::make_unique<ShmBackend>(*rank.gather_rings)};
  if (const auto across = across_hosts(world, hierarchy)) {
    auto backend = flat(slices, *across);
    rank.across = backend.get();
    parts.across = std::move(backend);
  }
  rank.backend = std::make_unique<PathBackend>(
      BackendTable::of_hosts({.name = "memory"}, hierarchy, {.least = limits.least}),
      flat(all, world),
      std::make_unique<HierarchicalBackend>(std::move(parts), hierarchy, limits.stretch));
  return rank;
}

class SimHosts {
 public:
  SimHosts(const std::vector<int>& sizes, const Limits& limits = {}) {
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
      for (int l = 0; l < size; ++l, ++world.position)
        ranks.push_back(make_rank(fd, l, world, all, slices[static_cast<std::size_t>(l)], limits));
      close(fd);
    }
  }

  /// One thread drives all ranks: no rank may wait for another inside progress().
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

TEST_CASE("random buckets over even and uneven hosts equal the reference") {
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
    SimHosts hosts(shape);
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
  SimHosts hosts({2, 2});
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

TEST_CASE(
    "with 16-bit elements on the wire, hosts exchange half the bytes and round nothing inside") {
  constexpr std::uint64_t kCount = 1 << 20U;
  const auto wire = GENERATE(WireDType::bf16, WireDType::f16);
  SimHosts hosts({2, 2});
  // One rank's value alone would be rounded to 1 or -1; the host's sum is a power of two.
  const float tiny = 1.0F / (1 << 14U);
  std::vector<std::vector<float>> values;
  for (std::size_t r = 0; r < 4; ++r) values.emplace_back(kCount, r % 2 == 0 ? 1 + tiny : -1);
  for (std::size_t r = 0; r < 4; ++r) {
    Bucket bucket{.like = {.elements = kCount, .wire = wire}};
    bucket.parts.push_back({.in = values[r].data(), .out = values[r].data(), .elements = kCount});
    REQUIRE(hosts.ranks[r].backend->start(std::move(bucket)));
  }
  hosts.settle(1);
  const auto from_host_0 = hosts.ranks[0].across->sent() + hosts.ranks[1].across->sent();
  CHECK(from_host_0 >= kCount * 2);
  CHECK(from_host_0 <= kCount * 2 * 102 / 100);
  for (const auto& value : values) REQUIRE(value == std::vector<float>(kCount, 2 * tiny));
}

TEST_CASE("averages that fit into float16 do not overflow on the wire") {
  constexpr std::uint64_t kCount = 1 << 16U;
  SimHosts hosts({4, 4});
  std::vector<std::vector<float>> values(8, std::vector<float>(kCount, 40000));
  for (std::size_t r = 0; r < 8; ++r) {
    Bucket bucket{.like = {.op = ReduceOp::average, .elements = kCount, .wire = WireDType::f16}};
    bucket.parts.push_back({.in = values[r].data(), .out = values[r].data(), .elements = kCount});
    REQUIRE(hosts.ranks[r].backend->start(std::move(bucket)));
  }
  hosts.settle(1);
  for (const auto& value : values) REQUIRE(value == std::vector<float>(kCount, 40000));
}

TEST_CASE("error feedback gives hosts the exact mean over many steps, however they are fused") {
  constexpr std::uint64_t kCount = 1000;
  constexpr int kSteps = 256;
  SimHosts hosts({2, 2}, {.stretch = 1500, .least = 0});
  const float value = 1 + 1.0F / 1024;  // bfloat16 has no number between 1 and 1 + 1/128.
  std::vector<float> in(kCount, value);
  std::vector<std::vector<float>> remainders(4, std::vector<float>(2 * kCount + 1, 0));
  std::vector<std::vector<float>> out(4, std::vector<float>(kCount));
  std::vector<float> other(4096, 3);
  std::vector<double> sum(kCount, 0);
  for (int step = 0; step < kSteps; ++step) {
    const std::uint64_t before = static_cast<std::uint64_t>(step) % 3 * 700;
    for (std::size_t r = 0; r < 4; ++r) {
      Bucket bucket{.like = {.elements = kCount, .wire = WireDType::bf16}};
      if (before != 0)
        bucket.parts.push_back(
            {.in = other.data(), .out = other.data() + 2048, .elements = before});
      bucket.parts.push_back({.in = in.data(),
                              .out = out[r].data(),
                              .elements = kCount,
                              .remainder = remainders[r].data(),
                              .result_remainder = remainders[r].data() + kCount});
      REQUIRE(hosts.ranks[r].backend->start(std::move(bucket)));
    }
    hosts.settle(static_cast<std::uint64_t>(step) + 1);
    for (std::size_t r = 1; r < 4; ++r) REQUIRE(out[r] == out[0]);
    for (std::size_t i = 0; i < kCount; ++i) sum[i] += out[0][i];
  }
  // The remainders of at most two ranks per host hold the part that has not been sent yet.
  for (const double total : sum) REQUIRE(std::abs(total / kSteps - 4 * value) < 0.2 / kSteps);
  for (const auto& remainder : remainders) REQUIRE(remainder.back() == 0);
}

TEST_CASE("on each host as many ranks own slices as the smallest host has") {
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
  hierarchy = hierarchy_of(world).value();  // Ranks are placed on the hosts in turn.
  CHECK(hierarchy.hosts == 2);
  CHECK(hierarchy.owners == 3);
  CHECK(hierarchy.local_rank == 1);
  CHECK(across_hosts(world, hierarchy)->members == std::vector<int>{2, 3});
}

TEST_CASE("abort leaves no message in flight") {
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

TEST_CASE("buckets that complete inside start are reported by the next progress") {
  SimHosts hosts({2, 2}, {.least = 0});
  for (const auto kind : {Kind::allreduce, Kind::allgather}) {
    for (auto& rank : hosts.ranks) {
      Bucket bucket;
      bucket.like.kind = kind;
      bucket.parts.push_back({.id = TensorId{1}, .elements = 0, .row_elements = 1});
      if (kind == Kind::allgather) bucket.rows.assign(4, 0);
      REQUIRE(rank.backend->start(std::move(bucket)));
      REQUIRE(rank.backend->completed() == rank.backend->started());
      CHECK(rank.backend->progress());
      CHECK_FALSE(rank.backend->progress());
    }
  }
}
