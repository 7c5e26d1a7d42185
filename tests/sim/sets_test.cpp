// SPDX-License-Identifier: Apache-2.0
// Process sets on one host: each agrees and moves on its own.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/sim/sessions.hpp"
#include "tests/sim/sim_job.hpp"

using horo::Errc;
using horo::Rank;
using horo::SetId;
using horo::runtime::DType;
using horo::runtime::Kind;
using horo::runtime::kWorld;
using horo::runtime::Session;
using horo::sim::Buffer;
using horo::sim::run_sessions;
using horo::sim::SimJob;
using horo::sim::tight_params;
using horo::sim::vector_of;
using horo::sim::wait_for;

namespace {

constexpr std::uint64_t kMostSteps = 2'000'000;

void fill(Buffer& buffer, float value) {
  auto* at = reinterpret_cast<float*>(buffer.data());
  std::fill(at, at + buffer.signature.elements, value);
}

bool holds(Buffer& buffer, float value) {
  const auto* at = reinterpret_cast<const float*>(buffer.data());
  return std::all_of(at, at + buffer.signature.elements, [value](float v) { return v == value; });
}

}  // namespace

TEST_CASE("overlapping sets in random order never wait for each other in a circle") {
  const std::vector<std::vector<int>> all_sets{{0, 1, 2, 3}, {0, 1}, {1, 2},   {2, 3},
                                               {0, 3},       {0, 2}, {0, 1, 3}};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    SimJob job(4, seed, tight_params());
    std::vector<SetId> ids{kWorld};
    for (std::size_t s = 1; s < all_sets.size(); ++s) ids.push_back(job.add_set(all_sets[s]));
    for (int r = 0; r < 4; ++r) {
      std::vector<std::pair<std::size_t, int>> mine;  // set, tensor
      for (std::size_t s = 0; s < all_sets.size(); ++s) {
        if (std::find(all_sets[s].begin(), all_sets[s].end(), r) == all_sets[s].end()) continue;
        for (int t = 0; t < 6; ++t) mine.emplace_back(s, t);
      }
      std::shuffle(mine.begin(), mine.end(), job.random());
      for (const auto& [s, t] : mine) {
        const std::int64_t sizes[] = {1, 300, 5000};
        // The same name in every set: the tensors are independent.
        auto& buffer =
            job.add(r, "t" + std::to_string(t),
                    vector_of(Kind::allreduce, DType::f32, sizes[t % 3]), t % 2 == 0, ids[s]);
        fill(buffer, static_cast<float>(r + 1));
      }
    }
    REQUIRE(job.run(kMostSteps));
    for (int r = 0; r < 4; ++r) {
      for (auto& buffer : job.buffers(r)) {
        float sum = 0;
        for (const int member : all_sets[buffer->set.index()])
          sum += static_cast<float>(member + 1);
        REQUIRE(buffer->operation->status() == Errc::ok);
        CHECK(holds(*buffer, sum));
      }
    }
  }
}

TEST_CASE("a set with a stopped member delays no other set") {
  auto params = tight_params();
  params.capacity = 512;
  SimJob job(3, 5, params);
  const auto slow = job.add_set({0, 1});
  const auto quick = job.add_set({0, 2});
  const auto signature = vector_of(Kind::allreduce, DType::f32, 9000);
  for (const int r : {0, 1}) job.add(r, "slow", signature, false, slow);
  for (const int r : {0, 2}) {
    for (int i = 0; i < 200; ++i) job.add(r, "q" + std::to_string(i), signature, false, quick);
  }
  // Both have submitted and an entry is in flight; then rank 1 moves no more.
  while (job.buffers(1)[0]->operation == nullptr || !job.sets(0).active()) job.step();
  job.pause(1);
  job.run(kMostSteps);
  CHECK(!job.buffers(0)[0]->operation->done());
  for (std::size_t i = 1; i < job.buffers(0).size(); ++i) {
    REQUIRE(job.buffers(0)[i]->operation != nullptr);
    REQUIRE(job.buffers(0)[i]->operation->status() == Errc::ok);
  }
}

TEST_CASE("a loss ends the operations of all sets") {
  SimJob job(3, 9, tight_params());
  const auto set = job.add_set({0, 1});
  const auto signature = vector_of(Kind::allreduce, DType::f32, 9000);
  job.add(0, "a", signature, false, set);
  job.add(0, "b", signature, false);
  while (job.buffers(0)[1]->operation == nullptr) job.step();
  job.kill(2);  // Not even a member of the set.
  REQUIRE(job.run(kMostSteps));
  CHECK(job.buffers(0)[0]->operation->status() == Errc::peer_lost);
  CHECK(job.buffers(0)[1]->operation->status() == Errc::peer_lost);
}

TEST_CASE("sets are added and removed while the job runs, and leave nothing behind") {
  std::atomic<int> wrong{0};
  const auto blocks_after = [&](int rounds) {
    const int fd = run_sessions(3, [&](Session& session, int rank) {
      for (int round = 0; round < rounds; ++round) {
        const auto id = session.add_set({Rank{2}, Rank{round % 2}});
        if (!id || *id != SetId{1}) ++wrong;
        const auto signature = vector_of(Kind::allreduce, DType::f32, 3000);
        const auto tensor = session.declare(*id, "x", signature);
        const bool member = rank == 2 || rank == round % 2;
        if (tensor.has_value() != member) ++wrong;
        if (member) {
          std::vector<float> values(3000, static_cast<float>(rank));
          auto& operation =
              **session.submit(*id, *tensor, {.in = values.data(), .out = values.data()});
          if (!wait_for(session, operation) || values[2999] != static_cast<float>(2 + round % 2))
            ++wrong;
          session.operations().put(operation);
        }
        if (!session.remove_set(*id)) ++wrong;
        if (session.sets().find(*id) != nullptr) ++wrong;
      }
    });
    struct stat status {};
    fstat(fd, &status);
    close(fd);
    return status.st_blocks;
  };
  const auto few = blocks_after(2);  // Every rank has been a member once.
  CHECK(blocks_after(30) == few);
  CHECK(wrong == 0);
}

TEST_CASE(
    "sets are added and removed while a thread waits for a tensor that a peer submits later") {
  std::atomic<int> wrong{0};
  const int fd = run_sessions(2, [&](Session& session, int rank) {
    const auto tensor = *session.declare(kWorld, "g", vector_of(Kind::allreduce, DType::f32, 9));
    std::vector<float> values(9, 1);
    const auto sum = [&] {
      const auto operation =
          session.submit(kWorld, tensor, {.in = values.data(), .out = values.data()});
      if (!operation || !wait_for(session, **operation) || values[8] != 2) ++wrong;
    };
    const auto change_sets = [&] {
      for (int round = 0; round < 20; ++round) {
        const auto set = session.add_set({Rank{round % 2}});
        if (!set || !session.remove_set(*set)) ++wrong;
      }
    };
    if (rank == 0) {
      const auto slept = session.counters().sleeps;
      std::thread waiter(sum);
      while (session.counters().sleeps == slept) std::this_thread::yield();
      change_sets();
      waiter.join();
    } else {
      change_sets();
      sum();
    }
  });
  CHECK(wrong == 0);
  close(fd);
}

TEST_CASE("a set that ranks ask for differently is refused on all of them, and the job continues") {
  std::atomic<int> wrong{0};
  const auto expect = [&](const auto& result, Errc code, const char* words) {
    if (result || result.error().code != code ||
        result.error().message.find(words) == std::string::npos)
      ++wrong;
  };
  const int fd = run_sessions(3, [&](Session& session, int rank) {
    expect(session.add_set({Rank{0}, Rank{rank == 2 ? 2 : 1}}), Errc::mismatch,
           "rank 0 asked to add ranks 0, 1, rank 2 to add ranks 0, 2");
    expect(session.add_set({}), Errc::invalid_argument, "without ranks");
    expect(session.add_set({Rank{0}, Rank{3}}), Errc::invalid_argument, "ranks are 0 to 2");
    expect(session.add_set({Rank{1}, Rank{1}}), Errc::invalid_argument, "named twice");
    expect(session.add_set({Rank{2}, Rank{1}, Rank{0}}), Errc::duplicate, "process set 0");
    expect(session.remove_set(SetId{7}), Errc::not_found, "no process set 7");
    expect(session.remove_set(kWorld), Errc::invalid_argument, "holds all ranks");
    if (!session.add_set({Rank{1}})) ++wrong;
    expect(session.add_set({Rank{1}}), Errc::duplicate, "process set 1");
  });
  CHECK(wrong == 0);
  close(fd);
}

TEST_CASE("removing a set ends operations that not all members have submitted") {
  std::atomic<int> ended{0};
  const int fd = run_sessions(3, [&](Session& session, int rank) {
    const auto set = *session.add_set({Rank{0}, Rank{1}});
    if (rank == 0) {
      const auto tensor =
          *session.declare(set, "lonely", vector_of(Kind::allreduce, DType::f32, 9));
      std::vector<float> values(9);
      auto& operation = **session.submit(set, tensor, {.in = values.data(), .out = values.data()});
      if (!session.remove_set(set)) return;
      if (operation.done() && operation.status() == Errc::shut_down) ++ended;
      session.operations().put(operation);
    } else {
      static_cast<void>(session.remove_set(set));
    }
  });
  CHECK(ended == 1);
  close(fd);
}
