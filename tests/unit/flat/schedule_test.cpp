// SPDX-License-Identifier: Apache-2.0
// Schedules run by a machine of their own: every rank's memory in one process, message by message,
// each delivered as late as it can be.
#include "runtime/backends/flat/schedule.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include <catch2/catch.hpp>

#include "runtime/tensor/tuning.hpp"

using namespace horo::runtime;

namespace {

using Memory = std::vector<std::byte>;
using Number = std::uint64_t;  // The sum of the inputs tells which ranks took part.

constexpr auto kElement = sizeof(Number);

Number& at(Memory& memory, std::uint64_t offset) {
  return *reinterpret_cast<Number*>(memory.data() + offset);
}

/// Runs the schedules of all ranks round by round; a rank goes on as soon as its receives are
/// there.
void run(const std::vector<Schedule>& plans, std::vector<Memory>& memories) {
  const auto n = plans.size();
  std::map<std::tuple<std::size_t, std::size_t, std::uint32_t>, Memory> wire;
  std::vector<std::size_t> round(n, 0);
  std::vector<bool> sent(n, false);
  // Messages between two ranks, by sender and receiver. Transports that keep their order need no
  // other order: MPI's tags repeat after a while.
  std::map<std::pair<std::size_t, std::size_t>, std::uint32_t> next_sent;
  std::map<std::pair<std::size_t, std::size_t>, std::uint32_t> next_received;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < n; ++r) {
      if (round[r] == plans[r].rounds.size()) continue;
      const auto& now = plans[r].rounds[round[r]];
      if (!sent[r]) {
        for (const auto& s : now.sends) {
          const auto* from = memories[r].data() + s.offset;
          const auto key = std::make_tuple(r, static_cast<std::size_t>(s.peer), s.number);
          REQUIRE(wire.emplace(key, Memory(from, from + s.bytes)).second);
          REQUIRE(s.number == next_sent[{r, static_cast<std::size_t>(s.peer)}]++);
        }
        sent[r] = moved = true;
      }
      bool all = true;
      for (const auto& in : now.receives)
        all = all && wire.count({static_cast<std::size_t>(in.peer), r, in.number}) != 0;
      if (!all) continue;
      for (const auto& in : now.receives) {
        const auto found = wire.find({static_cast<std::size_t>(in.peer), r, in.number});
        REQUIRE(found->second.size() == in.bytes);
        REQUIRE(in.number == next_received[{static_cast<std::size_t>(in.peer), r}]++);
        REQUIRE(in.offset + in.bytes <= memories[r].size());
        std::memcpy(memories[r].data() + in.offset, found->second.data(), in.bytes);
        wire.erase(found);
      }
      for (const auto& combine : now.combines) {
        for (std::uint64_t e = 0; e < combine.elements; ++e) {
          Number sum = 0;
          for (const auto source : combine.sources) sum += at(memories[r], source + e * kElement);
          at(memories[r], combine.target + e * kElement) = sum;
        }
      }
      ++round[r];
      sent[r] = false;
      moved = true;
    }
  }
  for (std::size_t r = 0; r < n; ++r) REQUIRE(round[r] == plans[r].rounds.size());
  REQUIRE(wire.empty());
}

Mesh mesh_of(int position, int size, bool shares_hosts) {
  return {.position = position, .size = size, .shares_hosts = shares_hosts};
}

Number value(std::size_t rank, std::uint64_t element) {
  return (Number{1} << rank) + element * 1000003;
}

constexpr Algorithm kAlgorithms[] = {Algorithm::exchange, Algorithm::direct, Algorithm::ring,
                                     Algorithm::doubling, Algorithm::halving_doubling};

}  // namespace

TEST_CASE("every algorithm adds every rank's elements once, at any size and count") {
  for (const auto algorithm : kAlgorithms) {
    for (int n = 1; n <= 17; ++n) {
      for (const std::uint64_t count : {1U, 2U, 3U, 16U, 37U}) {
        std::vector<Schedule> plans;
        std::vector<Memory> memories;
        for (int r = 0; r < n; ++r) {
          plans.push_back(make_allreduce(mesh_of(r, n, false), algorithm, count, kElement));
          memories.emplace_back(plans.back().memory);
          for (std::uint64_t e = 0; e < count; ++e)
            at(memories.back(), e * kElement) = value(static_cast<std::size_t>(r), e);
        }
        run(plans, memories);
        INFO(name(algorithm) << " of " << n << " ranks, " << count << " elements");
        for (std::size_t r = 0; r < plans.size(); ++r) {
          for (std::uint64_t e = 0; e < count; ++e) {
            const auto all = (Number{1} << n) - 1 + static_cast<Number>(n) * e * 1000003;
            REQUIRE(at(memories[r], plans[r].result + e * kElement) == all);
          }
        }
      }
    }
  }
}

TEST_CASE("each element is completed in exactly one last step on each rank that reduces it") {
  // A result that is divided or scaled twice, or not at all, shows nowhere else.
  for (const auto algorithm : {Algorithm::ring, Algorithm::doubling, Algorithm::halving_doubling}) {
    for (int n = 2; n <= 9; ++n) {
      std::uint64_t last = 0;
      for (int r = 0; r < n; ++r) {
        const auto plan = make_allreduce(mesh_of(r, n, false), algorithm, 100, 4);
        CHECK(plan.scale_inputs);
        for (const auto& round : plan.rounds) {
          for (const auto& combine : round.combines) {
            CHECK(combine.stage != Stage::whole);
            last += combine.stage == Stage::last ? combine.elements : 0;
          }
        }
      }
      int core = 1;
      while (core * 2 <= n) core *= 2;
      CHECK(last == (algorithm == Algorithm::doubling ? 100U * static_cast<unsigned>(core) : 100U));
    }
  }
}

TEST_CASE("a ring sends twice its share, and no algorithm that is chosen for much more") {
  const std::uint64_t bytes = 64U << 20U;
  for (int n = 2; n <= 12; ++n) {
    for (const bool shares : {false, true}) {
      const auto mesh = mesh_of(0, n, shares);
      const auto plan = make_allreduce(
          mesh, choose_allreduce(mesh, bytes, Partial::exact, kUsualSmallMessage), bytes / 4, 4);
      const auto ranks = static_cast<std::uint64_t>(n);
      CHECK(plan.sent() <= 2 * (ranks - 1) * bytes / ranks + 64);
    }
  }
}

TEST_CASE("small buckets take few rounds") {
  CHECK(choose_allreduce(mesh_of(0, 4, true), 1024, Partial::exact, kUsualSmallMessage) ==
        Algorithm::exchange);
  CHECK(choose_allreduce(mesh_of(0, 100, true), 1024, Partial::exact, kUsualSmallMessage) ==
        Algorithm::doubling);
  CHECK(choose_allreduce(mesh_of(0, 1000, true), 4U << 20U, Partial::exact, kUsualSmallMessage) ==
        Algorithm::halving_doubling);
  CHECK(choose_allreduce(mesh_of(0, 4, true), 64U << 20U, Partial::exact, kUsualSmallMessage) ==
        Algorithm::ring);
  CHECK(choose_allreduce(mesh_of(0, 4, false), 64U << 20U, Partial::exact, kUsualSmallMessage) ==
        Algorithm::direct);
}

TEST_CASE("what counts as a small message decides between one way and fewer bytes") {
  constexpr std::uint64_t kSum = 256U << 10U;
  const auto chosen = [](int ranks, std::uint64_t small_message) {
    return choose_allreduce(mesh_of(0, ranks, false), kSum, Partial::exact, small_message);
  };
  CHECK(chosen(2, kUsualSmallMessage) == Algorithm::direct);
  CHECK(chosen(2, 2 * kSum) == Algorithm::exchange);
  CHECK(chosen(4, 2 * kSum) == Algorithm::direct);
  CHECK(chosen(4, 4 * kSum) == Algorithm::exchange);
  CHECK(chosen(12, kSum) == Algorithm::doubling);
}

TEST_CASE("sums whose parts may not be stored are reduced in one step") {
  // The sum of three int8 of 100 does not fit an int8; their average does.
  CHECK(choose_allreduce(mesh_of(0, 100, true), 64U << 20U, Partial::wrong, kUsualSmallMessage) ==
        Algorithm::direct);
  CHECK(choose_allreduce(mesh_of(0, 4, true), 64U << 20U, Partial::rounded, kUsualSmallMessage) ==
        Algorithm::direct);
  CHECK(choose_allreduce(mesh_of(0, 100, true), 64U << 20U, Partial::rounded, kUsualSmallMessage) ==
        Algorithm::ring);
}

TEST_CASE("all-gather brings uneven parts to every rank, directly and around the ring") {
  for (const bool shares : {false, true}) {
    for (int n = 1; n <= 6; ++n) {
      std::vector<std::uint64_t> bytes;
      for (int r = 0; r < n; ++r)
        bytes.push_back(kElement * (r == 1 ? 0 : 30000U + static_cast<unsigned>(r)));
      std::vector<Schedule> plans;
      std::vector<Memory> memories;
      for (int r = 0; r < n; ++r) {
        plans.push_back(make_allgather(mesh_of(r, n, shares), bytes));
        memories.emplace_back(plans.back().memory);
        const auto me = static_cast<std::size_t>(r);
        const auto begin = std::accumulate(bytes.begin(), bytes.begin() + r, std::uint64_t{0});
        std::memset(memories.back().data() + begin, r + 1, bytes[me]);
      }
      run(plans, memories);
      for (auto& memory : memories) {
        std::size_t offset = 0;
        for (std::size_t r = 0; r < bytes.size(); ++r) {
          REQUIRE(std::all_of(memory.begin() + static_cast<std::ptrdiff_t>(offset),
                              memory.begin() + static_cast<std::ptrdiff_t>(offset + bytes[r]),
                              [r](std::byte b) { return b == static_cast<std::byte>(r + 1); }));
          offset += bytes[r];
        }
      }
    }
  }
}

TEST_CASE("a broadcast reaches every rank from any root, as a tree and as a chain") {
  for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{1} << 20U}) {
    for (int n = 1; n <= 9; ++n) {
      for (int root = 0; root < n; ++root) {
        std::vector<Schedule> plans;
        std::vector<Memory> memories;
        for (int r = 0; r < n; ++r) {
          plans.push_back(make_broadcast(mesh_of(r, n, false), root, bytes));
          memories.emplace_back(plans.back().memory, r == root ? std::byte{7} : std::byte{0});
        }
        run(plans, memories);
        for (const auto& memory : memories) REQUIRE(memory.back() == std::byte{7});
      }
    }
  }
}

TEST_CASE("reduce-scatter gives each rank the sum of its uneven part") {
  for (const bool shares : {false, true}) {
    for (int n = 1; n <= 6; ++n) {
      std::vector<std::uint64_t> elements;
      for (int r = 0; r < n; ++r)
        elements.push_back(r == 2 ? 0 : 20000U + static_cast<unsigned>(r));
      const auto all = std::accumulate(elements.begin(), elements.end(), std::uint64_t{0});
      std::vector<Schedule> plans;
      std::vector<Memory> memories;
      for (int r = 0; r < n; ++r) {
        plans.push_back(
            make_reducescatter(mesh_of(r, n, shares), elements, kElement, Partial::exact));
        memories.emplace_back(plans.back().memory);
        for (std::uint64_t e = 0; e < all; ++e)
          at(memories.back(), e * kElement) = value(static_cast<std::size_t>(r), e);
      }
      run(plans, memories);
      std::uint64_t begin = 0;
      for (std::size_t r = 0; r < plans.size(); ++r) {
        for (std::uint64_t e = 0; e < elements[r]; ++e) {
          const auto sum = (Number{1} << n) - 1 + static_cast<Number>(n) * (begin + e) * 1000003;
          REQUIRE(at(memories[r], plans[r].result + e * kElement) == sum);
        }
        begin += elements[r];
      }
    }
  }
}

TEST_CASE("all-to-all transposes uneven parts") {
  const int n = 5;
  const auto length = [](std::size_t from, std::size_t to) {
    return 8 * ((from * 7 + to * 3) % 5);
  };
  std::vector<Schedule> plans;
  std::vector<Memory> memories;
  for (std::size_t r = 0; r < n; ++r) {
    std::vector<std::uint64_t> to;
    std::vector<std::uint64_t> from;
    for (std::size_t other = 0; other < n; ++other) {
      to.push_back(length(r, other));
      from.push_back(length(other, r));
    }
    plans.push_back(make_alltoall(mesh_of(static_cast<int>(r), n, false), to, from));
    memories.emplace_back(plans.back().memory);
    std::size_t offset = 0;
    for (std::size_t other = 0; other < n; ++other) {
      std::memset(memories.back().data() + offset, static_cast<int>(r * n + other), to[other]);
      offset += to[other];
    }
  }
  run(plans, memories);
  for (std::size_t r = 0; r < n; ++r) {
    auto offset = plans[r].result;
    for (std::size_t other = 0; other < n; ++other) {
      for (std::size_t i = 0; i < length(other, r) && other != r; ++i)
        REQUIRE(memories[r][offset + i] == static_cast<std::byte>(other * n + r));
      offset += length(other, r);
    }
  }
}

TEST_CASE("no rank leaves a barrier before the last has entered") {
  for (int n = 1; n <= 9; ++n) {
    std::vector<Schedule> plans;
    std::vector<Memory> memories;
    for (int r = 0; r < n; ++r) {
      plans.push_back(make_barrier(mesh_of(r, n, false)));
      memories.emplace_back(plans.back().memory);
    }
    run(plans, memories);
    // After k rounds a rank has heard, through others, of 2^k ranks.
    CHECK((std::size_t{1} << plans.front().rounds.size()) >= static_cast<std::size_t>(n));
  }
}
