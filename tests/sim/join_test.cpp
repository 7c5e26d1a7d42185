// SPDX-License-Identifier: Apache-2.0
// Ranks that run out of data before the others.
#include <algorithm>
#include <cstring>

#include <catch2/catch.hpp>

#include "base/race_point.hpp"
#include "tests/sim/sim_job.hpp"

using horo::Errc;
using horo::SetId;
using horo::runtime::DType;
using horo::runtime::Kind;
using horo::runtime::kWorld;
using horo::runtime::ReduceOp;
using horo::runtime::Signature;
using horo::sim::Buffer;
using horo::sim::SimJob;
using horo::sim::tight_params;
using horo::sim::vector_of;

namespace {

constexpr std::uint64_t kMostSteps = 2'000'000;

Signature join_signature() {
  Signature s;
  s.kind = Kind::join;
  s.elements = 0;
  return s;
}

Buffer& add_join(SimJob& job, int rank, SetId set = kWorld) {
  return job.add(rank, "horo.join", join_signature(), false, set);
}

template <typename T>
Buffer& add_values(SimJob& job, int rank, const std::string& name, const Signature& signature,
                   T value, bool shared = false) {
  auto& buffer = job.add(rank, name, signature, shared);
  auto* at = reinterpret_cast<T*>(buffer.data());
  std::fill(at, at + signature.elements, value);
  return buffer;
}

int last_joined(const Buffer& join) {
  std::int32_t rank = -1;
  REQUIRE(join.operation->status() == Errc::ok);
  REQUIRE(join.operation->result_bytes == sizeof rank);
  std::memcpy(&rank, join.operation->result, sizeof rank);
  return rank;
}

Signature with(ReduceOp op, DType dtype, std::int64_t count, double prescale = 1) {
  auto signature = vector_of(Kind::allreduce, dtype, count);
  signature.op = op;
  signature.prescale = prescale;
  return signature;
}

}  // namespace

TEST_CASE("joined ranks change no result, in any order of submissions") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    SimJob job(3, seed, tight_params());
    int most = 0;
    int counts[3];
    for (int r = 0; r < 3; ++r) {
      counts[r] = static_cast<int>(job.random()() % 12);
      most = std::max(most, counts[r]);
    }
    for (int r = 0; r < 3; ++r) {
      for (int t = 0; t < counts[r]; ++t) {
        // Small, staged and in the arena. Tensor t is in flight only on ranks that have it.
        const std::int64_t sizes[] = {3, 900, 9000};
        add_values(job, r, "t" + std::to_string(t), with(ReduceOp::sum, DType::f32, sizes[t % 3]),
                   static_cast<float>(r + 1), t % 2 == 0);
      }
      add_join(job, r);
    }
    REQUIRE(job.run(kMostSteps));
    const int last = last_joined(*job.buffers(0).back());
    for (int r = 0; r < 3; ++r) {
      CHECK(last_joined(*job.buffers(r).back()) == last);
      for (int t = 0; t < counts[r]; ++t) {
        float sum = 0;
        for (int q = 0; q < 3; ++q) sum += t < counts[q] ? static_cast<float>(q + 1) : 0.0F;
        auto& buffer = *job.buffers(r)[static_cast<std::size_t>(t)];
        REQUIRE(buffer.operation->status() == Errc::ok);
        const auto* at = reinterpret_cast<const float*>(buffer.data());
        CHECK(std::all_of(at, at + buffer.signature.elements, [sum](float v) { return v == sum; }));
      }
    }
  }
}

TEST_CASE("a tensor completes though a rank joins while the last one submits it") {
  // Rank 0 gathers the marks of its group, to which rank 1 adds the last one meanwhile.
  constexpr int kRanks = 37;
  static SimJob* running = nullptr;
  SimJob job(kRanks, 1, tight_params());
  running = &job;
  for (int r = 0; r < kRanks; ++r) {
    add_values(job, r, "t", with(ReduceOp::sum, DType::i32, 3), 1);
    add_join(job, r);
    if (r != 1) job.submit_next_of(r);
  }
  horo::race_point_hook = [] {
    horo::race_point_hook = nullptr;
    running->submit_next_of(1);
  };
  job.submit_next_of(0);
  REQUIRE(horo::race_point_hook == nullptr);
  REQUIRE(job.run(kMostSteps));
  for (int r = 0; r < kRanks; ++r) {
    CHECK(job.buffers(r)[0]->operation->status() == Errc::ok);
    CHECK(*reinterpret_cast<const std::int32_t*>(job.buffers(r)[0]->data()) == kRanks);
  }
}

TEST_CASE("joined ranks change no result in a set that counts marks in groups") {
  constexpr int kRanks = 37;
  constexpr int kTensors = 4;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    SimJob job(kRanks, seed, tight_params());
    std::vector<int> counts;
    for (int r = 0; r < kRanks; ++r) {
      counts.push_back(static_cast<int>(job.random()() % (kTensors + 1)));
      for (int t = 0; t < counts.back(); ++t) {
        add_values(job, r, "t" + std::to_string(t),
                   with(ReduceOp::sum, DType::i32, t % 2 == 0 ? 3 : 900), r + 1);
      }
      add_join(job, r);
    }
    REQUIRE(job.run(kMostSteps));
    for (int r = 0; r < kRanks; ++r) {
      CHECK(last_joined(*job.buffers(r).back()) == last_joined(*job.buffers(0).back()));
      for (int t = 0; t < counts[static_cast<std::size_t>(r)]; ++t) {
        int sum = 0;
        for (int q = 0; q < kRanks; ++q) sum += t < counts[static_cast<std::size_t>(q)] ? q + 1 : 0;
        auto& buffer = *job.buffers(r)[static_cast<std::size_t>(t)];
        REQUIRE(buffer.operation->status() == Errc::ok);
        const auto* at = reinterpret_cast<const int*>(buffer.data());
        CHECK(std::all_of(at, at + buffer.signature.elements, [sum](int v) { return v == sum; }));
      }
    }
  }
}

TEST_CASE("every reduction has its neutral element") {
  SimJob job(2, 3, tight_params());
  auto& join = add_join(job, 1);
  while (join.operation == nullptr) job.step();
  int n = 0;
  const auto name = [&n] { return "n" + std::to_string(n++); };
  for (const std::int64_t count : {1, 3000}) {
    const auto run = [&](ReduceOp op, DType dtype, auto value, auto expected) {
      auto& buffer = add_values(job, 0, name(), with(op, dtype, count), value);
      for (std::uint64_t i = 0; i < kMostSteps; ++i) {
        if (buffer.operation != nullptr && buffer.operation->done()) break;
        job.step();
      }
      CAPTURE(static_cast<int>(op), static_cast<int>(dtype), count);
      REQUIRE(buffer.operation->status() == Errc::ok);
      using T = decltype(value);
      CHECK(reinterpret_cast<const T*>(buffer.data())[count - 1] == static_cast<T>(expected));
    };
    run(ReduceOp::sum, DType::i64, std::int64_t{-7}, -7);
    run(ReduceOp::average, DType::f32, 6.0F,
        3.0F);  // Divided by all ranks, as if the joined one had zeros.
    run(ReduceOp::product, DType::f64, -2.5, -2.5);
    run(ReduceOp::product, DType::i8, std::int8_t{-3}, -3);
    run(ReduceOp::min, DType::f32, 1e30F, 1e30F);
    run(ReduceOp::max, DType::f32, -1e30F, -1e30F);
    run(ReduceOp::min, DType::u16, std::uint16_t{65000}, 65000);
    run(ReduceOp::max, DType::i32, std::int32_t{-2000000000}, -2000000000);
    run(ReduceOp::min, DType::boolean, std::uint8_t{1}, 1);
    run(ReduceOp::max, DType::boolean, std::uint8_t{0}, 0);
    run(ReduceOp::product, DType::f16, std::uint16_t{0x4000}, 0x4000);
    run(ReduceOp::max, DType::bf16, std::uint16_t{0xc000}, 0xc000);
  }
}

TEST_CASE(
    "an operation that a joined rank cannot take part in ends with a mismatch, and the job "
    "continues") {
  SimJob job(2, 5, tight_params());
  auto& join = add_join(job, 1);
  while (join.operation == nullptr) job.step();
  add_values(job, 0, "gathered", vector_of(Kind::allgather, DType::i32, 8), 1);
  add_values(job, 0, "scaled", with(ReduceOp::min, DType::f32, 8, 2.0), 1.0F);
  add_values(job, 0, "sum", with(ReduceOp::sum, DType::f32, 8, 2.0), 1.0F);
  add_join(job, 0);
  REQUIRE(job.run(kMostSteps));
  CHECK(job.buffers(0)[0]->operation->status() == Errc::mismatch);
  CHECK(job.buffers(0)[0]->operation->message() ==
        "tensor 'gathered': allgather is not possible while a rank has joined (rank 1)");
  CHECK(job.buffers(0)[1]->operation->status() == Errc::mismatch);
  CHECK(job.buffers(0)[2]->operation->status() == Errc::ok);
  CHECK(*reinterpret_cast<const float*>(job.buffers(0)[2]->data()) == 2.0F);
  CHECK(last_joined(*job.buffers(0)[3]) == 0);
}

TEST_CASE("after a join all ranks work as before and may join again") {
  SimJob job(3, 8, tight_params());
  for (int round = 0; round < 5; ++round) {
    std::vector<Buffer*> sums;
    for (int r = 0; r < 3; ++r) {
      // A small tensor that only some ranks know: the parity of payload slots must still agree.
      if (r <= round % 3) {
        add_values(job, r, "some" + std::to_string(round % 2), with(ReduceOp::sum, DType::f32, 4),
                   1.0F);
      }
      add_join(job, r);
    }
    REQUIRE(job.run(kMostSteps));
    for (int r = 0; r < 3; ++r)
      sums.push_back(&add_values(job, r, "all", with(ReduceOp::sum, DType::f32, 4), 1.0F));
    REQUIRE(job.run(kMostSteps));
    for (auto* sum : sums) {
      REQUIRE(sum->operation->status() == Errc::ok);
      CHECK(*reinterpret_cast<const float*>(sum->data()) == 3.0F);
    }
  }
}

TEST_CASE("a rank that comes back after a join has its signatures compared again") {
  SimJob job(2, 6, tight_params());
  const auto sum = [&job](int rank, std::int64_t count) -> Buffer& {
    return add_values(job, rank, "x", with(ReduceOp::sum, DType::f32, count), 1.0F);
  };
  sum(0, 4);
  sum(1, 4);
  REQUIRE(job.run(kMostSteps));
  add_join(job, 0);
  sum(1, 900);
  add_join(job, 1);
  REQUIRE(job.run(kMostSteps));
  auto& old = sum(0, 4);
  auto& fresh = sum(1, 900);
  REQUIRE(job.run(kMostSteps));
  CHECK(old.operation->status() == Errc::mismatch);
  CHECK(fresh.operation->status() == Errc::mismatch);
}

TEST_CASE("a rank that has joined one set continues in another") {
  SimJob job(3, 4, tight_params());
  const auto pair = job.add_set({0, 1});
  auto& join = add_join(job, 0, pair);
  for (int r = 0; r < 3; ++r)
    add_values(job, r, "world", with(ReduceOp::sum, DType::f32, 900), 1.0F);
  auto& alone = job.add(1, "alone", with(ReduceOp::sum, DType::f32, 900), false, pair);
  std::memset(alone.data(), 0, alone.signature.bytes());
  add_join(job, 1, pair);
  REQUIRE(job.run(kMostSteps));
  CHECK(last_joined(join) == 1);
  CHECK(alone.operation->status() == Errc::ok);
  for (int r = 0; r < 3; ++r) {
    auto& buffer = r == 0 ? *job.buffers(0)[1] : *job.buffers(r)[0];
    REQUIRE(buffer.operation->status() == Errc::ok);
    CHECK(*reinterpret_cast<const float*>(buffer.data()) == 3.0F);
  }
}

TEST_CASE("a submission after a join is refused") {
  SimJob job(2, 1, tight_params());
  auto& join = add_join(job, 0);
  while (join.operation == nullptr) job.step();
  auto& engine = job.engine(0);
  const auto id = *engine.claims().declare("late", with(ReduceOp::sum, DType::f32, 4));
  horo::runtime::OperationTable operations;
  std::vector<float> values(4);
  const auto claimed =
      engine.claims().claim(id, {.in = values.data(), .out = values.data()}, **operations.take());
  REQUIRE(!claimed);
  CHECK(claimed.error().code == Errc::invalid_argument);
  CHECK(claimed.error().message ==
        "tensor 'late' after this rank has joined; wait until all ranks have");
}
