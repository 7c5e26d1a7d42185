// SPDX-License-Identifier: Apache-2.0
// Two or three processes on one board wake each other, with real futexes, as often as this takes to
// lose a wake-up if the protocol allows one.
//
// Shown to find lost wake-ups: with the look in `Waker::sleep` made before the sleeper registers
// (`const Duration limit = look();` moved above the BellSleeper), each of the first three cases
// fails within a second of rounds. The last case keeps that proof: its ranks do not look again.
#include "runtime/host/waker.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <random>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

#include "base/cpu/cpu.hpp"
#include "runtime/host/host_memory.hpp"

using namespace std::chrono_literals;
using namespace horo;
using namespace horo::runtime;

namespace {

constexpr std::uint32_t kRounds = 20'000;  ///< For two processes.
constexpr std::size_t kMostRanks = 3;
constexpr Duration kLost = 10s;     ///< No process that can run is as late as this.
constexpr Duration kLostOnce = 1s;  ///< The same for ranks that look once, and do lose one.

/// How the ranks sleep.
enum class How { driver_for_entries, driver_for_chunks, runtime_thread };

/// Whether a sleeper looks for news again once it has registered, as it must.
enum class Look { again, once };

/// The memory that the processes share besides the board.
struct Shared {
  std::array<std::atomic<std::uint32_t>, kMostRanks>
      published;                    ///< By rank: the last round it has begun.
  std::atomic<std::uint32_t> lost;  ///< Wake-ups that never came.
};

class SharedPage {
 public:
  SharedPage()
      : memory_(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                     -1, 0)) {
    REQUIRE(memory_ != MAP_FAILED);
  }

  ~SharedPage() { munmap(memory_, sizeof(Shared)); }

  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;

  Shared& get() const { return *static_cast<Shared*>(memory_); }

 private:
  void* const memory_;
};

/// One rank's side. Each round rank 0 publishes first and the others wait for it; then these
/// publish at the same time, and rank 0 waits for all of them.
class Player {
 public:
  Player(HostMemory& memory, std::size_t ranks, Shared& shared, How how, Look look,
         std::uint64_t seed)
      : waker_(memory.waker()),
        me_(memory.me().index()),
        first_peer_(me_ == 0 ? 1 : 0),
        end_of_peers_(me_ == 0 ? ranks : 1),
        shared_(shared),
        how_(how),
        look_(look),
        random_(seed) {}

  void play(std::uint32_t rounds) {
    for (std::uint32_t round = 1; round <= rounds && shared_.lost.load() == 0; ++round) {
      if (me_ == 0) publish(round);
      if (!await(round)) return;
      if (me_ != 0) publish(round);
    }
  }

 private:
  void pause() {
    for (auto n = random_() % 400; n > 0; --n) horo::cpu_pause();
  }

  void publish(std::uint32_t round) {
    pause();
    shared_.published[me_].store(round, std::memory_order_seq_cst);
    const auto what = how_ == How::driver_for_chunks ? interest::kChunks : interest::kEntries;
    for (auto peer = first_peer_; peer < end_of_peers_; ++peer)
      waker_.wake(LocalRank{static_cast<int>(peer)}, what);
  }

  bool arrived(std::uint32_t round) const {
    for (auto peer = first_peer_; peer < end_of_peers_; ++peer) {
      if (shared_.published[peer].load(std::memory_order_seq_cst) < round) return false;
    }
    return true;
  }

  /// Sleeps until its peers have published the round; false when it was never woken for it.
  bool await(std::uint32_t round) {
    const auto& clock = SteadyClock::instance();
    const auto limit = look_ == Look::again ? kLost : kLostOnce;
    while (!arrived(round)) {
      if (shared_.lost.load() != 0) return false;
      pause();
      // The peer publishes between this rank's one look and its sleep, and finds it awake.
      while (look_ == Look::once && !arrived(round) && shared_.lost.load() == 0) pause();
      const auto before = clock.now();
      sleep(round, limit);
      if (clock.now() - before < limit || !arrived(round)) continue;
      ++shared_.lost;
      return false;
    }
    return true;
  }

  void sleep(std::uint32_t round, Duration limit) {
    const auto look = [&]() -> Duration {
      pause();
      const bool news = look_ == Look::again && arrived(round);
      pause();
      return news ? Duration::zero() : limit;
    };
    if (how_ == How::runtime_thread) {
      waker_.say_undriven();
      waker_.sleep(Sleeper::runtime_thread, look);
      waker_.say_awake();
      return;
    }
    const auto who = round % 2 == 0 ? Sleeper::caller : Sleeper::runtime_thread;
    waker_.sleep_as_driver(who, how_ == How::driver_for_chunks, look);
  }

  Waker& waker_;
  const std::size_t me_;
  const std::size_t first_peer_;
  const std::size_t end_of_peers_;
  Shared& shared_;
  const How how_;
  const Look look_;
  std::mt19937_64 random_;
};

std::unique_ptr<HostMemory> attach(int fd, int rank) {
  auto memory = HostMemory::attach(fd, LocalRank{rank}, Rank{rank}, {.arena_bytes = 1 << 20U});
  if (!memory) return nullptr;
  (*memory)->waker().say_awake();
  return std::move(memory).value();
}

bool ended_well(pid_t child) {
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Plays all sides, each in a process of its own; how many wake-ups were lost.
std::uint32_t play(How how, Look look = Look::again, int ranks = 2) {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  const SharedPage page;
  const int fd = *make_board({.local_size = ranks, .nonce = 1});
  const auto run = [&](int rank) {
    const auto memory = attach(fd, rank);
    if (memory == nullptr) return false;
    Player(*memory, static_cast<std::size_t>(ranks), page.get(), how, look,
           seed + static_cast<unsigned>(rank))
        .play(ranks == 2 ? kRounds : kRounds / 4);
    return true;
  };
  std::vector<pid_t> children;
  for (int rank = 1; rank < ranks; ++rank) {
    children.push_back(fork());
    REQUIRE(children.back() >= 0);
    if (children.back() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(run(rank) ? 0 : 1);
  }
  CHECK(run(0));
  for (const pid_t child : children) CHECK(ended_well(child));
  close(fd);
  return page.get().lost.load();
}

}  // namespace

TEST_CASE("no wake-up for entries is lost between two processes whose drivers sleep") {
  CHECK(play(How::driver_for_entries) == 0);
}

TEST_CASE("no wake-up for chunks is lost between two processes whose drivers sleep in an entry") {
  CHECK(play(How::driver_for_chunks) == 0);
}

TEST_CASE("no wake-up is lost between two processes whose own threads sleep") {
  CHECK(play(How::runtime_thread) == 0);
}

TEST_CASE("no wake-up is lost where two processes have news for the same sleeper") {
  CHECK(play(How::driver_for_entries, Look::again, 3) == 0);
  CHECK(play(How::driver_for_chunks, Look::again, 3) == 0);
  CHECK(play(How::runtime_thread, Look::again, 3) == 0);
}

TEST_CASE("a sleeper that does not look again after it has registered loses a wake-up") {
  CHECK(play(How::driver_for_entries, Look::once) > 0);
}
