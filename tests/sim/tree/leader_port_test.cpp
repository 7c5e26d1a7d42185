// SPDX-License-Identifier: Apache-2.0
// A leader that waits for its host's members, which finish entries at the worst moment.
#include "trainees.hpp"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "base/race_point.hpp"
#include "base/unique_fd.hpp"
#include "runtime/board/board.hpp"

using namespace horo;           // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;  // NOLINT(google-build-using-namespace): a test of it
using horo::sim::vector_of;

namespace {

constexpr std::uint32_t kCapacity = 16;

/// Two ranks of one host, in a set with members on other hosts.
class Host {
 public:
  Host() {
    BoardParams params;
    params.capacity = kCapacity;
    params.chunk_bytes = 4096;
    params.ring_slots = 2;
    params.arena_bytes = 1 << 20;
    for (int r = 0; r < 2; ++r) {
      auto& memory = memory_[r];
      memory = *HostMemory::attach(fd_.value(), LocalRank{r}, Rank{r}, params);
      memory->slot(LocalRank{r}).state.store(RankState::attached);
      boards[r] =
          *Board::attach(*memory, 0, {LocalRank{0}, LocalRank{1}}, BoardSpan::several_hosts);
    }
  }

  LeaderPort& leader() { return *boards[0]->leader_port(); }

  /// An entry with all names that fit, which no member here has submitted.
  void fill() {
    std::vector<TensorId> ids;
    for (std::uint32_t i = 0; i < kCapacity; ++i)
      ids.push_back(**leader().define(fmt::format("n{}", i), vector_of(Kind::allreduce, 1)));
    REQUIRE(leader().publish({.kind = EntryKind::work,
                              .ids = ids,
                              .rows = {},
                              .inputs = {},
                              .text = {},
                              .rank = Rank{-1},
                              .tuning = {}}));
  }

 private:
  UniqueFd fd_{*make_board({.local_size = 2, .nonce = 1})};
  std::unique_ptr<HostMemory> memory_[2];

 public:
  std::unique_ptr<Board> boards[2];
};

std::function<void()> at_next_race_point;

/// Calls `run` at the first race point while it lives.
class Interruption {
 public:
  explicit Interruption(std::function<void()> run) {
    at_next_race_point = std::move(run);
    race_point_hook.store([] {
      if (const auto now = std::exchange(at_next_race_point, nullptr)) now();
    });
  }

  ~Interruption() {
    race_point_hook.store(nullptr);
    at_next_race_point = nullptr;
  }

  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
};

}  // namespace

TEST_CASE("a leader that waits for a name's slot is called when the last member frees one") {
  Host host;
  host.fill();
  host.boards[0]->log().advance(1);
  host.leader().take_done();
  auto& last = *host.boards[1];
  const auto signature = vector_of(Kind::allreduce, 1);
  REQUIRE(host.leader().define("new", signature).value() == std::nullopt);
  last.log().advance(1);
  CHECK(last.leader_port()->needs_leader());
  CHECK(host.leader().define("new", signature).value() != std::nullopt);
}

TEST_CASE("a slot that becomes free while the leader finds none is not overlooked") {
  Host host;
  host.fill();
  host.boards[0]->log().advance(1);
  host.leader().take_done();
  bool called = false;
  const Interruption interruption([&] {
    host.boards[1]->log().advance(1);
    called = host.boards[1]->leader_port()->needs_leader();
  });
  const auto id = host.leader().define("new", vector_of(Kind::allreduce, 1));
  REQUIRE(at_next_race_point == nullptr);
  REQUIRE(id);
  CHECK((id->has_value() || called));
}
