// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/rank_entries.hpp"

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using Life = RankEntry::Life;

namespace {

WorkerIdentity worker(int number) {
  WorkerIdentity identity;
  identity.rank = Rank{number};
  return identity;
}

AgentSpec elastic_spec(std::uint32_t slots, std::uint32_t window = 0) {
  AgentSpec spec;
  spec.elastic = true;
  spec.slots = slots;
  spec.output_window = window;
  return spec;
}

int slot_of(const RankEntry* entry) {
  return entry == nullptr ? -1 : entry->slot.value();
}

}  // namespace

TEST_CASE("ranks get the slots in order, and start in order") {
  RankEntries entries(elastic_spec(3));
  CHECK_FALSE(entries.any_waiting());
  for (const int rank : {5, 6, 7}) REQUIRE(entries.add(worker(rank)));
  for (const int rank : {5, 6, 7}) {
    REQUIRE(entries.any_waiting());
    CHECK(entries.take_next().identity.rank == Rank{rank});
    CHECK(slot_of(entries.find(Rank{rank})) == rank - 5);
  }
  CHECK_FALSE(entries.any_waiting());
  CHECK(entries.living().empty());
}

TEST_CASE("a rank gets the first slot whose rank has ended, with a new output window") {
  RankEntries entries(elastic_spec(3, 10));
  for (const int rank : {0, 1, 2}) {
    REQUIRE(entries.add(worker(rank)));
    entries.take_next().life = Life::running;
  }
  auto* const second = entries.find(Rank{1});
  CHECK(second->window.add(10));
  second->life = Life::ended;
  CHECK(entries.find(Rank{1}) == nullptr);
  CHECK(entries.living().size() == 2);
  const auto next = entries.add(worker(8));
  REQUIRE(next);
  CHECK(*next == second);
  CHECK((*next)->life == Life::waiting);
  CHECK_FALSE((*next)->window.is_full());
}

TEST_CASE("a rank without a free slot, or with the number of another one, is refused") {
  RankEntries entries(elastic_spec(2));
  REQUIRE(entries.add(worker(0)));
  CHECK(entries.add(worker(0)).error().code == Errc::protocol);
  entries.take_next().life = Life::killed;
  CHECK(entries.add(worker(0)).error().code == Errc::protocol);
  REQUIRE(entries.add(worker(1)));
  CHECK_THAT(entries.add(worker(2)).error().message, Catch::Contains("all 2 slots"));
}

TEST_CASE("workers are told apart by their numbers, and not by the ranks that were planned") {
  RankEntries entries(elastic_spec(3));
  for (const int number : {3, 8}) {
    auto identity = worker(0);
    identity.worker = number;
    REQUIRE(entries.add(identity));
  }
  CHECK(slot_of(entries.find(Rank{8})) == 1);
  CHECK(entries.find(Rank{0}) == nullptr);
  CHECK(entries.take_next().number == Rank{3});
}

TEST_CASE("a worker knows its number and slot, and its planned place is a possible one") {
  RankEntries entries(elastic_spec(3));
  REQUIRE(entries.add(worker(0)));
  auto planned = worker(6);
  planned.worker = 9;
  planned.size = 4;
  planned.local_rank = LocalRank{2};
  planned.local_size = 4;
  auto* entry = entries.add(planned).value();
  CHECK(entry->identity.elastic);
  CHECK(entry->identity.worker == 9);
  CHECK(entry->identity.board_slot == 1);
  CHECK(entry->identity.size == 7);
  CHECK(entry->identity.local_size == 4);
  CHECK(entry->part == 2);
  planned.worker = 10;
  planned.board_slot = 3;
  entry = entries.add(planned).value();
  CHECK(entry->part == 3);
  CHECK(entry->identity.board_slot == 2);
}

TEST_CASE("a rank of a job that is not elastic keeps its identity") {
  AgentSpec spec;
  auto rank = worker(6);
  rank.local_rank = LocalRank{2};
  spec.ranks = {rank};
  RankEntries entries(spec);
  const auto* entry = entries.add(rank).value();
  CHECK_FALSE(entry->identity.elastic);
  CHECK(entry->identity.board_slot == -1);
  CHECK(entry->identity.size == 1);
  CHECK(entry->part == 2);
}

TEST_CASE("a rank that is not to be started leaves its slot, and the others start") {
  RankEntries entries(elastic_spec(3));
  for (const int rank : {0, 1, 2}) REQUIRE(entries.add(worker(rank)));
  CHECK(entries.cancel(Rank{1}));
  CHECK_FALSE(entries.cancel(Rank{1}));
  CHECK_FALSE(entries.cancel(Rank{9}));
  CHECK(entries.take_next().identity.rank == Rank{0});
  CHECK(entries.take_next().identity.rank == Rank{2});
  CHECK(slot_of(entries.add(worker(3)).value()) == 1);
}
