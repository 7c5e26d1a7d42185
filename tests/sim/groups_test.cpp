// SPDX-License-Identifier: Apache-2.0
// Tensors that become ready together.
#include <algorithm>
#include <cstring>
#include <thread>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/sim/sessions.hpp"
#include "tests/sim/sim_job.hpp"

using horo::Errc;
using horo::runtime::DType;
using horo::runtime::Kind;
using horo::runtime::kWorld;
using horo::runtime::Operation;
using horo::runtime::Session;
using horo::runtime::SetSubmission;
using horo::sim::Buffer;
using horo::sim::run_sessions;
using horo::sim::SimJob;
using horo::sim::tight_params;
using horo::sim::vector_of;
using horo::sim::wait_for;

namespace {

constexpr std::uint64_t kMostSteps = 2'000'000;

Buffer& add_member(SimJob& job, int rank, const std::string& name, const std::string& group,
                   std::uint32_t size, std::int64_t count = 300) {
  auto& buffer = job.add(rank, name, vector_of(Kind::allreduce, DType::f32, count), false);
  auto* at = reinterpret_cast<float*>(buffer.data());
  std::fill(at, at + count, static_cast<float>(rank + 1));
  buffer.group = group;
  buffer.group_size = size;
  return buffer;
}

bool done(const Buffer& buffer) {
  return buffer.operation != nullptr && buffer.operation->done();
}

}  // namespace

TEST_CASE("no tensor of a group runs before all are submitted") {
  SimJob job(2, 2, tight_params());
  for (const char* name : {"a", "b", "c"}) add_member(job, 0, name, "g", 3);
  for (const char* name : {"c", "a"}) add_member(job, 1, name, "g", 3);
  job.run(20'000);
  for (auto& buffer : job.buffers(0)) CHECK(!done(*buffer));
  add_member(job, 1, "b", "g", 3);
  REQUIRE(job.run(kMostSteps));
  for (int r = 0; r < 2; ++r) {
    for (auto& buffer : job.buffers(r)) {
      REQUIRE(buffer->operation->status() == Errc::ok);
      CHECK(*reinterpret_cast<const float*>(buffer->data()) == 3.0F);
    }
  }
  // One entry has all of them, because they became ready together.
  CHECK(job.engine(0).counters().entries == 1);
}

TEST_CASE("tensors of a fusion class of their own share no entry with others") {
  for (const bool alone : {false, true}) {
    SimJob job(2, 1, tight_params());
    for (int r = 0; r < 2; ++r) {
      for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
        // a and b are one group, c and d another; e and f are in none.
        const std::string group = *name < 'c' ? "g" : *name < 'e' ? "h" : "";
        auto& buffer = add_member(job, r, name, group, group.empty() ? 0 : 2, 10);
        if (alone && !group.empty()) set_fusion_class(buffer.signature, group);
      }
    }
    job.submit_all();
    REQUIRE(job.run(kMostSteps));
    for (auto& buffer : job.buffers(0)) CHECK(buffer->operation->status() == Errc::ok);
    CHECK(job.engine(0).counters().entries == (alone ? 3 : 1));
  }
}

TEST_CASE("groups and single tensors complete in any order of submission") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    SimJob job(3, seed, tight_params());
    for (int round = 0; round < 3; ++round) {
      for (int r = 0; r < 3; ++r) {
        std::vector<std::pair<std::string, std::string>> names;
        for (int i = 0; i < 4; ++i) names.emplace_back("x" + std::to_string(i), "x");
        for (int i = 0; i < 3; ++i) names.emplace_back("y" + std::to_string(i), "y");
        for (int i = 0; i < 5; ++i) names.emplace_back("single" + std::to_string(i), "");
        std::shuffle(names.begin(), names.end(), job.random());
        for (const auto& [name, group] : names) {
          add_member(job, r, name, group, group == "x" ? 4 : 3,
                     1 + static_cast<std::int64_t>(name.size()) * 700);
        }
      }
      REQUIRE(job.run(kMostSteps));
    }
    for (int r = 0; r < 3; ++r) {
      for (auto& buffer : job.buffers(r)) {
        REQUIRE(buffer->operation->status() == Errc::ok);
        CHECK(*reinterpret_cast<const float*>(buffer->data()) == 6.0F);
      }
    }
  }
}

TEST_CASE("ranks that disagree about a group get a mismatch") {
  SimJob job(2, 6, tight_params());
  add_member(job, 0, "a", "g", 2);
  add_member(job, 0, "b", "g", 2);
  add_member(job, 1, "a", "", 0);
  add_member(job, 1, "b", "", 0);
  REQUIRE(job.run(kMostSteps));
  CHECK(job.buffers(0)[0]->operation->status() == Errc::mismatch);
  CHECK(job.buffers(0)[0]->operation->message() ==
        "tensor 'a': ranks disagree about the group: 'g' of 2 on rank 0, none on rank 1");
  CHECK(job.buffers(1)[1]->operation->status() == Errc::mismatch);
  // The mismatch names the group even if more differs: the group's other tensors may never come.
  add_member(job, 0, "e", "g", 2, 10);
  add_member(job, 1, "e", "g", 3, 20);
  REQUIRE(job.run(kMostSteps));
  CHECK(job.buffers(0)[2]->operation->message() ==
        "tensor 'e': ranks disagree about the group: 'g' of 2 on rank 0, 'g' of 3 on rank 1");
  // The job continues, and so do groups.
  for (int r = 0; r < 2; ++r) {
    add_member(job, r, "c", "g", 2);
    add_member(job, r, "d", "g", 2);
  }
  REQUIRE(job.run(kMostSteps));
  CHECK(job.buffers(1)[4]->operation->status() == Errc::ok);
}

TEST_CASE("a group is submitted whole or not at all") {
  std::atomic<int> wrong{0};
  const int fd = run_sessions(2, [&](Session& session, int) {
    const auto signature = vector_of(Kind::allreduce, DType::f32, 9);
    std::vector<float> values(9, 1.0F);
    std::vector<SetSubmission> group;
    for (const char* name : {"a", "b", "c"}) {
      const auto id = *session.declare(kWorld, name, signature, {"g", 3});
      group.push_back(
          {.set = kWorld, .tensor = id, .given = {.in = values.data(), .out = values.data()}});
    }
    std::vector<Operation*> operations;
    auto twice = group;
    twice[2] = twice[0];
    const auto refused = session.submit_all(twice, operations);
    if (refused || refused.error().code != Errc::duplicate || !operations.empty()) ++wrong;
    auto broken = group;
    broken[2].given.out = nullptr;
    if (session.submit_all(broken, operations)) ++wrong;
    // Nothing is in flight: the same group can be submitted, and runs.
    std::vector<std::vector<float>> buffers(3, std::vector<float>(9, 1.0F));
    for (std::size_t i = 0; i < 3; ++i)
      group[i].given = {.in = buffers[i].data(), .out = buffers[i].data()};
    if (!session.submit_all(group, operations) || operations.size() != 3) ++wrong;
    for (auto* operation : operations) {
      if (!wait_for(session, *operation) || operation->status() != Errc::ok) ++wrong;
      session.operations().put(*operation);
    }
    if (buffers[2][8] != 2.0F) ++wrong;
  });
  CHECK(wrong == 0);
  close(fd);
}

TEST_CASE("a rank that leaves with half a group submitted ends the whole group") {
  std::atomic<int> wrong{0};
  std::atomic<bool> submitted{false};
  const int fd = run_sessions(2, [&](Session& session, int rank) {
    const auto signature = vector_of(Kind::allreduce, DType::f32, 9);
    std::vector<float> a(9);
    std::vector<float> b(9);
    const auto first = *session.declare(kWorld, "a", signature, {"g", 2});
    const auto second = *session.declare(kWorld, "b", signature, {"g", 2});
    auto& x = **session.submit(kWorld, first, {.in = a.data(), .out = a.data()});
    if (rank == 0) {
      auto& y = **session.submit(kWorld, second, {.in = b.data(), .out = b.data()});
      submitted = true;
      if (!wait_for(session, x) || !wait_for(session, y) || y.status() != Errc::shut_down) ++wrong;
    } else {
      while (!submitted) std::this_thread::yield();  // A later submission would be refused.
      session.shutdown();
      if (!x.done()) ++wrong;
    }
  });
  CHECK(wrong == 0);
  close(fd);
}
