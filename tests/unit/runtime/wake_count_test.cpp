// SPDX-License-Identifier: Apache-2.0
// How often the ranks of a host ring each other. A ring of a sleeper is a system call, and on a
// host with many ranks these must not grow with the square of the ranks.
#include <functional>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runtime/host/rings.hpp"
#include "runtime/host/set_bells.hpp"

using namespace horo;           // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;  // NOLINT(google-build-using-namespace): a test of it

namespace {

/// Ranks of one host and one set, all in this thread.
class Ranks {
 public:
  explicit Ranks(int count) {
    const int fd = *make_board({.local_size = count, .nonce = 11});
    const BoardParams params{
        .capacity = 16, .chunk_bytes = 4096, .arena_bytes = 1 << 20, .cores = 2};
    Members members;
    for (int r = 0; r < count; ++r) members.emplace_back(r);
    for (int r = 0; r < count; ++r) {
      hosts_.push_back(*HostMemory::attach(fd, LocalRank{r}, Rank{r}, params));
      regions_.push_back(*SetRegion::attach(*hosts_.back(), 0, members));
    }
    close(fd);
  }

  int count() const { return static_cast<int>(hosts_.size()); }

  Waker& waker(int rank) { return hosts_[static_cast<std::size_t>(rank)]->waker(); }

  SetRegion& region(int rank) { return *regions_[static_cast<std::size_t>(rank)]; }

  /// Calls `act` while the drivers of the ranks from `first` on are about to sleep inside an entry.
  void while_asleep(int first, const std::function<void()>& act) {
    if (first == count()) return act();
    waker(first).sleep_as_driver(Sleeper::caller, true, [&] {
      while_asleep(first + 1, act);
      return Duration::zero();
    });
  }

 private:
  std::vector<std::unique_ptr<HostMemory>> hosts_;
  std::vector<std::unique_ptr<SetRegion>> regions_;
};

}  // namespace

TEST_CASE("of all ranks that have news for a sleeper, one rings") {
  Ranks ranks(48);
  const auto ring_by_all = [&ranks] {
    int rung = 0;
    for (int r = 1; r < ranks.count(); ++r)
      rung += ranks.waker(r).wake(LocalRank{0}, interest::kEntries) ? 1 : 0;
    return rung;
  };
  for (int sleep = 0; sleep < 3; ++sleep) {
    ranks.waker(0).sleep_as_driver(Sleeper::caller, false, [&] {
      CHECK(ring_by_all() == 1);
      return Duration::zero();
    });
    CHECK(ring_by_all() == 0);  // It is awake.
    ranks.waker(0).say_undriven();
    CHECK(ring_by_all() == 1);
  }
}

TEST_CASE("ranks that go to sleep ring each rank that is behind once, not once each") {
  Ranks ranks(48);
  for (int r = 0; r < ranks.count(); ++r) ranks.waker(r).say_undriven();
  ranks.region(0).body().needed.store(1);
  ranks.region(0).body().tail.store(1);
  int rung = 0;
  for (int r = 0; r < ranks.count(); ++r)
    rung += SetBells(ranks.region(r)).wake_laggards(SetBells::For::shares);
  CHECK(rung == ranks.count());
}

TEST_CASE(
    "an entry that no peer needs wakes the sleeping drivers and the ranks that need their thread") {
  Ranks ranks(4);
  const SetBells bells(ranks.region(0));
  const auto publish = [&](bool needed) {
    auto& body = ranks.region(0).body();
    const auto tail = body.tail.load() + 1;
    if (needed) body.needed.store(tail);
    body.tail.store(tail);
    return bells.wake(interest::kEntries);
  };
  ranks.waker(0).say_awake();
  for (int r = 1; r < 4; ++r) ranks.waker(r).say_undriven();
  CHECK(publish(false) == 0);
  ranks.waker(1).need_own_thread();
  CHECK(publish(false) == 1);
  ranks.waker(1).end_need();
  ranks.waker(1).say_undriven();  // It has looked.
  CHECK(publish(false) == 0);
  ranks.waker(2).sleep_as_driver(Sleeper::caller, false, [&] {
    CHECK(publish(false) == 1);
    return Duration::zero();
  });
  ranks.waker(2).say_undriven();
  CHECK(publish(true) == 3);
}

TEST_CASE("ranks that keep the log full are woken for room, and not for shares that nobody needs") {
  Ranks ranks(3);
  const SetBells bells(ranks.region(0));
  for (int r = 0; r < 3; ++r) ranks.waker(r).say_undriven();
  ranks.region(0).body().tail.store(2);
  ranks.region(0).area(1).cursor.store(2);
  CHECK(bells.wake_laggards(SetBells::For::shares, SetBells::Self::too) == 0);
  CHECK(bells.wake_laggards(SetBells::For::room) == 1);
  CHECK(bells.wake_laggards(SetBells::For::room, SetBells::Self::too) == 1);
}

TEST_CASE("a step that all ranks wait for wakes each rank once, when the last one can go on") {
  Ranks ranks(48);
  std::vector<Rings> rings;
  for (int r = 0; r < ranks.count(); ++r) rings.emplace_back(ranks.region(r));
  for (auto& mine : rings) mine.await(Count::reduced, 1);
  int rung = 0;
  ranks.while_asleep(0, [&] {
    for (int r = 0; r + 2 < ranks.count(); ++r)
      CHECK(rings[static_cast<std::size_t>(r)].announce(Count::reduced, 1) == 0);
    // The last rank waits for all others, of which this is the last.
    rung += rings[rings.size() - 2].announce(Count::reduced, 1);
    CHECK(rung == 1);
    rung += rings.back().announce(Count::reduced, 1);
    // A later step rings no rank that has not looked since.
    for (auto& mine : rings) rung += mine.announce(Count::reduced, 2);
  });
  CHECK(rung == ranks.count());
}

TEST_CASE("a chain wakes the next rank alone, and its end each rank once") {
  Ranks ranks(48);
  const int last = ranks.count() - 1;
  std::vector<Rings> rings;
  for (int r = 0; r <= last; ++r) rings.emplace_back(ranks.region(r));
  for (int r = 1; r <= last; ++r) rings[static_cast<std::size_t>(r)].await(Count::chained, 1);
  for (int r = 0; r < last; ++r) rings[static_cast<std::size_t>(r)].await_result(1);
  const auto add = [&rings](int rank) {
    auto& mine = rings[static_cast<std::size_t>(rank)];
    mine.count_chained(1);
    return mine.wake_successors();
  };
  // Each is woken by the one before it, and afterwards sleeps until the result is there.
  ranks.while_asleep(1, [&] {
    for (int r = 0; r < last; ++r) CHECK(add(r) == 1);
  });
  ranks.while_asleep(0, [&] {
    CHECK(add(last) == last);
    // The first rank alone waits for the others to have the result.
    rings.front().await(Count::chained_out, 1);
    int rung = 0;
    for (int r = 1; r <= last; ++r)
      rung += rings[static_cast<std::size_t>(r)].announce_chained_out(1);
    CHECK(rung == 0);  // It has been rung for the result, and has not looked since.
  });
  ranks.while_asleep(0, [&] {
    rings.front().await(Count::chained_out, 2);
    for (int r = 1; r < last; ++r)
      CHECK(rings[static_cast<std::size_t>(r)].announce_chained_out(2) == 0);
    CHECK(rings.back().announce_chained_out(2) == 1);
  });
}
