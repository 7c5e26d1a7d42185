// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/start_places.hpp"

#include <array>
#include <atomic>
#include <thread>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

#include "runtime/board/board.hpp"

using namespace horo;           // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;  // NOLINT(google-build-using-namespace): a test of it

namespace {

constexpr std::size_t kSets = 3;
constexpr std::uint64_t kEntries = 20'000;

/// Several sets of one rank, to whose logs threads append entries on device memory.
class Sets {
 public:
  Sets() {
    const int fd = *make_board({.local_size = 1, .nonce = 12});
    const BoardParams params{.capacity = 16, .chunk_bytes = 4096, .arena_bytes = 1 << 20};
    host_ = *HostMemory::attach(fd, LocalRank{0}, Rank{0}, params);
    for (std::size_t s = 0; s < kSets; ++s)
      boards_.push_back(*Board::attach(*host_, s, {LocalRank{0}}));
    close(fd);
    for (auto& board : boards_) threads_.emplace_back([this, &board] { append(*board); });
  }

  ~Sets() {
    stop_ = true;
    for (auto& thread : threads_) thread.join();
  }

  Sets(const Sets&) = delete;
  Sets& operator=(const Sets&) = delete;

  Board& board(std::size_t set) { return *boards_[set]; }

 private:
  void append(Board& board) {
    StartPlaces places(board.region(), board.log());
    while (!stop_) {
      if (board.log().in_flight() >= kLogSlots / 2) {
        std::this_thread::yield();
        continue;
      }
      LogSlot entry{};
      entry.kind = EntryKind::work;
      entry.place = places.take();
      board.log().append(entry, {});
      places.appended(0);
    }
  }

  std::unique_ptr<HostMemory> host_;
  std::vector<std::unique_ptr<Board>> boards_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("a rank that starts entries of several sets by their places leaves none out") {
  Sets sets;
  std::array<std::uint64_t, kSets> cursors{};
  std::array<std::uint64_t, kSets> given{};
  std::uint64_t last = 0;
  for (std::size_t s = 0; last < kEntries; s = (s + 1) % kSets) {
    auto& board = sets.board(s);
    if (board.log().published() == cursors[s]) continue;
    const auto place = board.region().tables().log[cursors[s] % kLogSlots].place;
    bool next = true;
    for (std::size_t other = 0; other < kSets; ++other) {
      if (other != s) next = next && sets.board(other).places().first_after(given[other]) > place;
    }
    if (!next) continue;
    REQUIRE(place == last + 1);
    last = given[s] = place;
    board.log().advance(++cursors[s]);
  }
}
