// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/directory/mark_counts.hpp"

#include <array>
#include <atomic>
#include <random>
#include <thread>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

#include "base/race_point.hpp"

using namespace horo;           // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;  // NOLINT(google-build-using-namespace): a test of it

namespace {

constexpr TensorId kTensor{0};
constexpr std::uint64_t kMarkInArena = arrivals::kMark + arrivals::kDirect;

/// A set of `count` members, seen by the first.
class OneRegion {
 public:
  explicit OneRegion(int count) {
    const int fd = *make_board({.local_size = count, .nonce = 12});
    const BoardParams params{.capacity = 16, .chunk_bytes = 4096, .arena_bytes = 1 << 20};
    Members members;
    for (int r = 0; r < count; ++r) members.emplace_back(r);
    host_ = *HostMemory::attach(fd, LocalRank{0}, Rank{0}, params);
    region_ = *SetRegion::attach(*host_, 0, members);
    close(fd);
  }

  const SetRegion& get() const { return *region_; }

  std::uint64_t count() const { return region_->tensor(kTensor).arrivals.load(); }

 private:
  std::unique_ptr<HostMemory> host_;
  std::unique_ptr<SetRegion> region_;
};

}  // namespace

TEST_CASE("many members change a tensor's count once for each of their groups") {
  for (const int members : {2, 32, 33, 48, 100, 192, kMostLocalRanks}) {
    CAPTURE(members);
    const OneRegion region(members);
    const MarkCounts counts(region.get());
    CHECK_FALSE(counts.any(kTensor));
    int changes = 0;
    std::uint64_t last = 0;
    for (int m = 0; m < members; ++m) {
      CHECK_FALSE(counts.has(kTensor, m));
      const auto now =
          counts.add(kTensor, m, m % 2 == 0 ? kMarkInArena : arrivals::kMark + arrivals::kChanged);
      CHECK(counts.has(kTensor, m));
      CHECK(counts.any(kTensor));
      if (!now) continue;
      ++changes;
      last = *now;
    }
    CHECK(changes == (members <= 32 ? members : (members + 15) / 16));
    CHECK(last == region.count());
    CHECK(arrivals::marks(last) == static_cast<std::uint32_t>(members));
    CHECK(arrivals::direct(last) == static_cast<std::uint32_t>((members + 1) / 2));
    CHECK(arrivals::changed(last) == static_cast<std::uint32_t>(members / 2));
    CHECK(arrivals::in_line(last) == 0);
    counts.clear(kTensor);
    for (int m = 0; m < members; ++m) CHECK_FALSE(counts.has(kTensor, m));
  }
}

TEST_CASE("gathered marks are in the tensor's count, whenever they are gathered") {
  constexpr int kMembers = 40;
  for (int before = 0; before <= kMembers; ++before) {
    CAPTURE(before);
    const OneRegion region(kMembers);
    const MarkCounts counts(region.get());
    for (int m = 0; m < before; ++m) counts.add(kTensor, m, kMarkInArena);
    CHECK_FALSE(counts.gather(kTensor));
    CHECK_FALSE(counts.gather(kTensor));  // The second time there is nothing to gather.
    CHECK(arrivals::marks(region.count()) == static_cast<std::uint32_t>(before));
    for (int m = before; m < kMembers; ++m) {
      const auto now = counts.add(kTensor, m, kMarkInArena);
      REQUIRE(now);
      CHECK(arrivals::marks(*now) == static_cast<std::uint32_t>(m + 1));
    }
    CHECK(region.count() == kMembers * kMarkInArena);
    counts.forget(kTensor, 3);
    CHECK_FALSE(counts.has(kTensor, 3));
  }
}

TEST_CASE("a rank that gathers learns that it has completed the tensor") {
  constexpr int kMembers = 36;
  static const MarkCounts* late = nullptr;
  const OneRegion region(kMembers);
  const MarkCounts counts(region.get());
  for (int m = 0; m < kMembers; ++m) {
    if (m != 20) CHECK_FALSE(counts.add(kTensor, m, kMarkInArena) == kMembers * kMarkInArena);
  }
  // The last member counts its own mark directly, before the rest of its group is in the count.
  late = &counts;
  race_point_hook = [] {
    race_point_hook = nullptr;
    const auto now = late->add(kTensor, 20, kMarkInArena);
    CHECK((now && arrivals::marks(*now) < kMembers));
  };
  const auto completed = counts.gather(kTensor, 17);
  REQUIRE(race_point_hook == nullptr);
  REQUIRE(completed);
  CHECK(*completed == kMembers * kMarkInArena);
}

TEST_CASE("members that mark and gather at once lose no mark and complete a tensor once") {
  constexpr int kMembers = 36;
  constexpr int kThreads = 4;
  const OneRegion region(kMembers);
  const MarkCounts counts(region.get());
  std::array<std::vector<int>, kThreads> marked;
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    for (auto& members : marked) members.clear();
    for (int m = 0; m < kMembers; ++m) marked[random() % kThreads].push_back(m);
    std::atomic<int> completions{0};
    std::vector<std::thread> threads;
    for (const auto& members : marked) {
      threads.emplace_back([&counts, &completions, &members] {
        for (const int m : members) {
          if (m % 11 == 0 && counts.gather(kTensor, m)) ++completions;
          const auto now = counts.add(kTensor, m, kMarkInArena);
          if (now && arrivals::marks(*now) == kMembers) ++completions;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    REQUIRE(region.count() == kMembers * kMarkInArena);
    REQUIRE(completions == 1);
    counts.clear(kTensor);
    region.get().tensor(kTensor).arrivals.store(0);
  }
}
