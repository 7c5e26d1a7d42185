// SPDX-License-Identifier: Apache-2.0
// Whole sessions, each on threads of its own, on one board: for the thread sanitizer.
#include <atomic>
#include <thread>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/sim/sessions.hpp"

using horo::Errc;
using horo::Rank;
using horo::runtime::DType;
using horo::runtime::Kind;
using horo::runtime::kWorld;
using horo::runtime::Operation;
using horo::runtime::Session;
using horo::runtime::SessionOptions;
using horo::sim::kLongEnough;
using horo::sim::meeting_on;
using horo::sim::run_sessions;
using horo::sim::tight_params;
using horo::sim::vector_of;
using horo::sim::wait_for;

namespace {

/// Runs `body(session, rank)` on a thread per rank, all on one board.
template <typename Body>
void run_ranks(int ranks, Body body) {
  close(run_sessions(ranks, body));
}

}  // namespace

TEST_CASE("sessions on threads sum what they submit") {
  std::atomic<int> wrong{0};
  run_ranks(3, [&](Session& session, int rank) {
    for (const std::int64_t count : {1, 1000, 9000}) {
      const auto id = *session.declare(kWorld, "sum" + std::to_string(count),
                                       vector_of(Kind::allreduce, DType::f32, count));
      for (int round = 0; round < 20; ++round) {
        std::vector<float> values(static_cast<std::size_t>(count),
                                  static_cast<float>(rank + round));
        auto& operation = **session.submit(kWorld, id, {.in = values.data(), .out = values.data()});
        if (!wait_for(session, operation) || operation.status() != Errc::ok) ++wrong;
        for (const float v : values) {
          if (v != static_cast<float>(3 + 3 * round)) ++wrong;
        }
        session.operations().put(operation);
      }
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("several threads of a rank submit and wait at once") {
  std::atomic<int> wrong{0};
  run_ranks(2, [&](Session& session, int rank) {
    std::vector<std::thread> callers;
    for (int t = 0; t < 3; ++t) {
      callers.emplace_back([&, t] {
        const auto id = *session.declare(kWorld, "thread" + std::to_string(t),
                                         vector_of(Kind::allreduce, DType::i32, 3000));
        for (int round = 0; round < 30; ++round) {
          std::vector<std::int32_t> values(3000, rank + t);
          auto& operation =
              **session.submit(kWorld, id, {.in = values.data(), .out = values.data()});
          if (!wait_for(session, operation) || values[2999] != 1 + 2 * t) ++wrong;
          session.operations().put(operation);
        }
      });
    }
    for (auto& caller : callers) caller.join();
  });
  CHECK(wrong == 0);
}

TEST_CASE(
    "a waiting thread takes the progress token from the rank's own thread, for one operation or "
    "many") {
  std::atomic<int> wrong{0};
  run_ranks(2, [&](Session& session, int rank) {
    std::vector<std::vector<float>> values(30);
    std::vector<horo::runtime::TensorHandle> ids;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto count = static_cast<std::int64_t>(100 + 1500 * (i % 7));
      ids.push_back(*session.declare(kWorld, "w" + std::to_string(i),
                                     vector_of(Kind::allreduce, DType::f32, count)));
      values[i].resize(static_cast<std::size_t>(count));
    }
    for (int round = 0; round < 20; ++round) {
      std::vector<Operation*> operations;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        std::fill(values[i].begin(), values[i].end(), static_cast<float>(rank));
        operations.push_back(
            *session.submit(kWorld, ids[i], {.in = values[i].data(), .out = values[i].data()}));
      }
      // The rank's own thread works now; threads that begin to wait in odd rounds find it working.
      if (round % 2 == 1) std::this_thread::yield();
      const auto deadline =
          horo::Deadline::in(horo::SteadyClock::instance(), horo::sim::kLongEnough);
      std::thread other([&] {
        if (!session.wait(std::span(operations).first(10), deadline)) ++wrong;
      });
      if (!session.wait(operations, deadline)) ++wrong;
      other.join();
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (operations[i]->status() != Errc::ok || values[i].back() != 1) ++wrong;
        session.operations().put(*operations[i]);
      }
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("callbacks run while no thread waits") {
  std::atomic<int> calls{0};
  run_ranks(2, [&](Session& session, int) {
    const auto id = *session.declare(kWorld, "c", vector_of(Kind::allreduce, DType::f32, 5000));
    std::vector<float> values(5000, 1.0F);
    auto& operation = **session.submit(kWorld, id, {.in = values.data(), .out = values.data()});
    const auto count = [](void* user, horo_op, horo_status) {
      static_cast<std::atomic<int>*>(user)->fetch_add(1);
    };
    if (!session.on_complete(operation, count, &calls)) return;
    while (!operation.done()) std::this_thread::yield();
  });
  CHECK(calls == 2);
}

TEST_CASE("no rank waits for ever when a joined rank leaves before the others") {
  std::atomic<int> hangs{0};
  std::atomic<int> other_ends{0};
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> sums{0};
    run_ranks(2, [&](Session& session, int rank) {
      if (rank == 0) {
        horo::runtime::Signature join;
        join.kind = Kind::join;
        join.elements = 0;
        const auto id = *session.declare(kWorld, "horo.join", join);
        if (!session.submit(kWorld, id, {})) ++other_ends;
        while (sums <= 3 * round) std::this_thread::yield();
        session.shutdown();
        return;
      }
      const auto id = *session.declare(kWorld, "x", vector_of(Kind::allreduce, DType::f32, 50000));
      std::vector<float> values(50000, 1.0F);
      auto status = Errc::ok;
      while (status == Errc::ok) {
        const auto operation =
            session.submit(kWorld, id, {.in = values.data(), .out = values.data()});
        if (!operation) {
          status = operation.error().code;
        } else if (!wait_for(session, **operation)) {
          ++hangs;
          return;
        } else {
          status = (*operation)->status();
          session.operations().put(**operation);
        }
        ++sums;
      }
      if (status != Errc::shut_down && status != Errc::peer_lost) ++other_ends;
    });
  }
  CHECK(hangs == 0);
  CHECK(other_ends == 0);
}

TEST_CASE("a shutdown ends the wait of another thread") {
  std::atomic<int> ended{0};
  std::atomic<bool> left{false};
  run_ranks(2, [&](Session& session, int rank) {
    if (rank != 0) {
      while (!left) std::this_thread::yield();
      return;
    }
    const auto id = *session.declare(kWorld, "lonely", vector_of(Kind::allreduce, DType::f32, 9));
    std::vector<float> values(9);
    auto& operation = **session.submit(kWorld, id, {.in = values.data(), .out = values.data()});
    const auto slept = session.counters().sleeps;
    std::thread waiter([&] {
      if (wait_for(session, operation) && operation.status() == Errc::shut_down) ++ended;
    });
    while (session.counters().sleeps == slept) std::this_thread::yield();
    session.shutdown();
    waiter.join();
    left = true;
  });
  CHECK(ended == 1);
}

TEST_CASE("a rank that waits for others to start is told why they never will") {
  const auto told = [](const horo::Poison& poison) {
    const int fd = *horo::make_board({.local_size = 2, .nonce = 1});
    const auto header = *horo::map_board_header(fd);
    horo::poison_board(header, poison, "here");
    const auto session =
        Session::join(meeting_on(0, 2, fd), SessionOptions{.board = tight_params()});
    horo::unmap_board_header(header);
    close(fd);
    return session ? "nothing" : session.error().message;
  };
  CHECK(told({.rank = Rank{-1}, .cause = horo::LossCause::aborted}) ==
        "before all ranks had started: the job is being stopped: the job was stopped");
  CHECK(told({.rank = Rank{-1}, .cause = horo::LossCause::given_up}) ==
        "before all ranks had started: the launcher has given up this generation of the job, or "
        "has ended");
  CHECK(told({.rank = Rank{1}, .cause = horo::LossCause::exited, .detail = 3}) ==
        "before all ranks had started: rank 1 on here was lost: exited with code 3");
}

TEST_CASE("a loss wakes a rank that waits for ever") {
  std::atomic<int> lost{0};
  std::atomic<bool> submitted{false};
  const int fd = *horo::make_board({.local_size = 2, .nonce = 1});
  const auto header = *horo::map_board_header(fd);
  std::thread waiter([&] {
    auto session = *Session::join(meeting_on(0, 2, fd), SessionOptions{.board = tight_params()});
    const auto id =
        *session->declare(kWorld, "never", vector_of(Kind::allreduce, DType::f32, 5000));
    std::vector<float> values(5000);
    auto& operation = **session->submit(kWorld, id, {.in = values.data(), .out = values.data()});
    submitted = true;
    if (wait_for(*session, operation) && operation.status() == Errc::peer_lost) ++lost;
    if (session->submit(kWorld, id, {.in = values.data(), .out = values.data()}).error().code ==
        Errc::peer_lost)
      ++lost;
  });
  {
    auto session = *Session::join(meeting_on(1, 2, fd), SessionOptions{.board = tight_params()});
    while (!submitted) std::this_thread::yield();
    horo::poison_board(header, {.rank = Rank{1}, .cause = horo::LossCause::exited, .detail = 3},
                       "here");
    waiter.join();
  }
  CHECK(lost == 2);
  horo::unmap_board_header(header);
  close(fd);
}

TEST_CASE("a rank that runs a callback when another is lost needs no time to acknowledge that") {
  const int fd = *horo::make_board({.local_size = 2, .nonce = 1});
  const auto header = *horo::map_board_header(fd);

  struct InCallback {
    std::atomic<bool> entered{false};
    std::atomic<bool> may_return{false};
  } state;

  std::atomic<bool> submitted{false};
  std::atomic<bool> waiting{false};
  Errc later = Errc::ok;
  std::thread caller([&] {
    auto session = *Session::join(meeting_on(0, 2, fd), SessionOptions{.board = tight_params()});
    std::vector<float> values(5000);
    const auto submit = [&](const char* name) {
      const auto id = *session->declare(kWorld, name, vector_of(Kind::allreduce, DType::f32, 5000));
      return *session->submit(kWorld, id, {.in = values.data(), .out = values.data()});
    };
    auto* const first = submit("first");
    REQUIRE(session->on_complete(
        *first,
        [](void* user, horo_op, horo_status) {
          auto& in = *static_cast<InCallback*>(user);
          in.entered = true;
          while (!in.may_return) std::this_thread::yield();
        },
        &state));
    submitted = true;
    while (!state.entered) std::this_thread::yield();
    auto* const second = submit("never");
    waiting = true;
    if (wait_for(*session, *second)) later = second->status();
  });
  {
    auto session = *Session::join(meeting_on(1, 2, fd), SessionOptions{.board = tight_params()});
    while (!submitted) std::this_thread::yield();
    std::vector<float> values(5000);
    const auto id =
        *session->declare(kWorld, "first", vector_of(Kind::allreduce, DType::f32, 5000));
    auto& operation = **session->submit(kWorld, id, {.in = values.data(), .out = values.data()});
    CHECK(wait_for(*session, operation));
    while (!state.entered || !waiting) std::this_thread::yield();
    CHECK(header->slot(horo::LocalRank{0}).poison_ack == 1);
    horo::poison_board(header, {.rank = Rank{1}, .cause = horo::LossCause::exited, .detail = 3},
                       "here");
    state.may_return = true;
    caller.join();
  }
  CHECK(later == Errc::peer_lost);
  horo::unmap_board_header(header);
  close(fd);
}

TEST_CASE("a caller that sleeps gets a tensor whose cycle time has passed before it was ready") {
  auto params = tight_params();
  params.tuning.cycle_ns = 1'000'000;
  std::atomic<Session*> sleeper{nullptr};
  std::atomic<std::uint64_t> sleeps{0};
  std::atomic<bool> got{false};
  std::atomic<bool> counted{false};
  std::atomic<bool> in_time{false};
  const int fd = run_sessions(
      2,
      [&](Session& session, int rank) {
        const auto id = *session.declare(kWorld, "x", vector_of(Kind::allreduce, DType::f32, 4));
        std::vector<float> values(4, 1);
        const auto submit = [&] {
          return *session.submit(kWorld, id, {.in = values.data(), .out = values.data()});
        };
        if (rank == 0) {
          auto* const operation = submit();
          sleeps = session.counters().sleeps;
          sleeper = &session;
          got = wait_for(session, *operation);
          if (got) session.operations().put(*operation);
          // The other rank reads the counters of this session, which ends here.
          while (!counted) std::this_thread::yield();
          return;
        }
        while (sleeper == nullptr || sleeper.load()->counters().sleeps == sleeps)
          std::this_thread::yield();
        counted = true;
        // A submitter that found no caller may note this time when a caller has come meanwhile and
        // has taken the tensor: it stays, and no tensor is ready.
        session.sets().find(kWorld)->board->ready().ready_since_or(1);
        auto* const operation = submit();
        // This rank computes on. At the end of its wait the other one looks in any case.
        const auto limit = horo::Deadline::in(horo::SteadyClock::instance(), kLongEnough / 2);
        while (!got && !limit.expired(horo::SteadyClock::instance().now()))
          std::this_thread::yield();
        in_time = got.load();
        if (wait_for(session, *operation)) session.operations().put(*operation);
      },
      params);
  close(fd);
  CHECK(in_time);
}
