// SPDX-License-Identifier: Apache-2.0
// Whole sessions, each on a thread of its own, on one board.
#pragma once

#include <atomic>
#include <thread>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

#include "runtime/session/session.hpp"
#include "tests/sim/sim_job.hpp"

namespace horo::sim {

inline constexpr auto kLongEnough = std::chrono::seconds(60);  // A hang, not a slow machine.

/// The meeting's result for rank `rank` of `ranks` on the board `fd`.
inline runtime::bootstrap::Meeting meeting_on(int rank, int ranks, int fd) {
  runtime::bootstrap::Meeting meeting;
  meeting.identity = {
      .rank = Rank{rank}, .size = ranks, .local_rank = LocalRank{rank}, .local_size = ranks};
  meeting.board = UniqueFd(dup(fd));
  return meeting;
}

/// Runs `body(session, rank)` on a thread per rank; the caller closes the board's descriptor.
template <typename Body>
[[nodiscard]] int run_sessions(int ranks, Body body,
                               const runtime::BoardParams& params = tight_params()) {
  const int fd = *make_board({.local_size = ranks, .nonce = 1});
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      auto session = runtime::Session::join(meeting_on(r, ranks, fd), {.board = params});
      if (!session) {
        ++failures;
        return;
      }
      body(**session, r);
      (*session)->shutdown();
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(failures == 0);
  return fd;
}

inline bool wait_for(runtime::Session& session, runtime::Operation& operation) {
  return session.wait(operation, Deadline::in(SteadyClock::instance(), kLongEnough));
}

}  // namespace horo::sim
