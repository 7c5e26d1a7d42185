// SPDX-License-Identifier: Apache-2.0
// Collectives of all kinds, drawn at random, against a reference that shares no code with them.
#include <algorithm>
#include <numeric>

#include <catch2/catch.hpp>

#include "tests/sim/drawn_op.hpp"

using horo::Errc;
using horo::runtime::DType;
using horo::runtime::Kind;
using horo::runtime::ReduceOp;
using horo::sim::Buffer;
using horo::sim::DrawnOp;
using horo::sim::SimJob;
using horo::sim::tight_params;
using horo::sim::vector_of;

namespace {

constexpr std::uint64_t kMostSteps = 2'000'000;

/// Every rank submits every operation, in an order of its own.
void submit_shuffled(SimJob& job, const std::vector<DrawnOp>& ops) {
  for (int r = 0; r < job.ranks(); ++r) {
    std::vector<std::size_t> order(ops.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), job.random());
    for (const auto i : order) horo::sim::add_drawn(job, r, ops[i]);
  }
}

void check_results(SimJob& job, const std::vector<DrawnOp>& ops, std::size_t first = 0) {
  for (int r = 0; r < job.ranks(); ++r) {
    auto& all = job.buffers(r);
    for (auto i = first; i < all.size(); ++i) {
      const auto op = std::find_if(ops.begin(), ops.end(),
                                   [&](const DrawnOp& o) { return o.name == all[i]->name; });
      INFO("rank " << r << ": " << op->text());
      REQUIRE(horo::sim::difference(*op, r, *all[i]) == "");
    }
  }
}

}  // namespace

TEST_CASE("collectives of all kinds, in any order, equal a trivial reference") {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    CAPTURE(seed);
    auto params = tight_params();
    params.tuning.fusion_threshold = seed % 5 == 0 ? 0 : std::uint64_t{1} << (10 + seed % 12);
    params.ring_slots = 2 + static_cast<std::uint32_t>(seed % 4);
    SimJob job(1 + static_cast<int>(seed % 5), seed, params);
    // On no rank, on some, on all.
    for (int r = 0; r < job.ranks(); ++r) {
      if (seed % 3 == 0 || (seed % 3 == 1 && job.random()() % 2 == 0)) job.lend(r);
    }
    std::vector<DrawnOp> ops;
    for (int i = 0; i < 10; ++i)
      ops.push_back(horo::sim::draw_op(job.ranks(), job.random(), "t" + std::to_string(i)));
    submit_shuffled(job, ops);
    REQUIRE(job.run(kMostSteps));
    check_results(job, ops);
  }
}

TEST_CASE("collectives of all kinds equal the reference in sets that count marks in groups") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    auto params = tight_params();
    params.cores = seed % 2 == 0 ? 2 : 0;  // With two, sums pass from rank to rank.
    SimJob job(static_cast<int>(33 + 5 * seed), seed, params);
    for (int r = 0; r < job.ranks() && seed % 3 == 0; ++r) job.lend(r);
    std::vector<DrawnOp> ops;
    for (int i = 0; i < 5; ++i)
      ops.push_back(horo::sim::draw_op(job.ranks(), job.random(), "t" + std::to_string(i)));
    submit_shuffled(job, ops);
    REQUIRE(job.run(kMostSteps));
    check_results(job, ops);
  }
}

TEST_CASE("a name may change its kind, shape and splits from one submission to the next") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    SimJob job(2 + static_cast<int>(seed % 3), seed, tight_params());
    for (int r = 0; r < job.ranks() && seed % 2 == 0; ++r) job.lend(r);
    for (int round = 0; round < 12; ++round) {
      CAPTURE(round);
      std::vector<DrawnOp> ops;
      for (const char* name : {"a", "b", "c"})
        ops.push_back(horo::sim::draw_op(job.ranks(), job.random(), name));
      const auto before = job.buffers(0).size();
      submit_shuffled(job, ops);
      REQUIRE(job.run(kMostSteps));
      check_results(job, ops, before);
    }
  }
}

TEST_CASE("splits change with every submission, without a new declaration") {
  constexpr int kRanks = 3;
  for (const std::int64_t rows : {6, 3000}) {  // In the marks, and through the rings.
    SimJob job(kRanks, 17, tight_params());
    const auto signature = vector_of(Kind::alltoall, DType::i32, rows);
    for (std::int64_t round = 0; round < 6; ++round) {
      CAPTURE(rows, round);
      for (int r = 0; r < kRanks; ++r) {
        auto* in = reinterpret_cast<std::int32_t*>(
            job.allocate(r, signature.bytes(), round % 2 == 0 && r != 1));
        for (std::int64_t i = 0; i < rows; ++i)
          in[i] = r * 1'000'000 + static_cast<std::int32_t>(round * 10'000 + i);
        // All go to one rank, a different one each time; the other rows are not sent.
        std::vector<std::int64_t> splits(kRanks);
        splits[static_cast<std::size_t>((r + round) % kRanks)] = rows - round;
        job.add(r, "x", signature, {.in = in}, splits);
      }
      REQUIRE(job.run(kMostSteps));
      for (int r = 0; r < kRanks; ++r) {
        const auto& operation = *job.buffers(r).back()->operation;
        const auto sender = static_cast<int>((r + kRanks * 6 - round) % kRanks);
        REQUIRE(operation.status() == Errc::ok);
        std::vector<std::int64_t> expected(kRanks);
        expected[static_cast<std::size_t>(sender)] = rows - round;
        CHECK(operation.rows == expected);
        const auto* got = static_cast<const std::int32_t*>(operation.result);
        for (std::int64_t i = 0; i < rows - round; ++i)
          REQUIRE(got[i] == sender * 1'000'000 + static_cast<std::int32_t>(round * 10'000 + i));
      }
    }
  }
}

TEST_CASE("reducescatter has the bits of its slice of the allreduce on every path") {
  for (const std::int64_t count : {5, 900, 30'001}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      for (const bool shared : {false, true}) {
        CAPTURE(count, horo::runtime::name(dtype), shared);
        SimJob job(4, 23, tight_params());
        for (int r = 0; r < 4; ++r) {
          auto all = vector_of(Kind::allreduce, dtype, count);
          all.prescale = 0.3;
          auto scattered = all;
          scattered.kind = Kind::reducescatter;
          const auto input = horo::tests::random_elements(dtype, all.elements, job.random());
          auto* in = job.allocate(r, input.size(), shared);
          std::memcpy(in, input.data(), input.size());
          job.add(r, "all", all, {.in = in, .out = job.allocate(r, input.size(), shared)});
          job.add(r, "mine", scattered, {.in = in});
        }
        REQUIRE(job.run(kMostSteps));
        for (int r = 0; r < 4; ++r) {
          const auto& mine = *job.buffers(r)[1]->operation;
          REQUIRE(mine.status() == Errc::ok);
          const auto share = horo::runtime::share_of(static_cast<std::uint64_t>(count), 4, r);
          REQUIRE(mine.result_bytes == share.count * size_of(dtype));
          const auto* slice = static_cast<const std::byte*>(job.buffers(r)[0]->given->out) +
                              share.first * size_of(dtype);
          CHECK(std::memcmp(mine.result, slice, mine.result_bytes) == 0);
        }
      }
    }
  }
}

TEST_CASE("sums that pass from rank to rank have the bits of those in place") {
  constexpr int kRanks = 34;
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::bf16}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::average, ReduceOp::max}) {
      // One piece, a last piece that is not whole, and more pieces than there are places.
      for (const std::int64_t count : {700, 40'003, 1'300'001}) {
        if (count > 100'000 && (dtype != DType::f32 || op != ReduceOp::average)) continue;
        CAPTURE(horo::runtime::name(dtype), static_cast<int>(op), count);
        auto params = tight_params();
        params.cores = 2;
        SimJob job(kRanks, 29, params);
        auto signature = vector_of(Kind::allreduce, dtype, count);
        signature.op = op;
        for (int r = 0; r < kRanks; ++r) {
          const auto input = horo::tests::random_elements(dtype, signature.elements, job.random());
          for (const bool shared : {false, true}) {
            auto* in = job.allocate(r, input.size(), shared);
            std::memcpy(in, input.data(), input.size());
            job.add(r, shared ? "in place" : "chain", signature, {.in = in, .out = in});
          }
        }
        REQUIRE(job.run(kMostSteps));
        const bool chains = dtype == DType::f32 || dtype == DType::f64 ||
                            (dtype == DType::i32 && op == ReduceOp::max) ||
                            (dtype == DType::i32 && op == ReduceOp::sum);
        CHECK((job.board(0).region().area(kRanks - 1).chained.load() != 0) == chains);
        const auto* const expected = job.buffers(0)[1]->given->out;
        for (int r = 0; r < kRanks; ++r) {
          for (auto& buffer : job.buffers(r)) {
            REQUIRE(buffer->operation->status() == Errc::ok);
            CHECK(std::memcmp(buffer->given->out, expected, signature.bytes()) == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("every kind with data fuses into fewer entries than tensors, with all of their bytes") {
  for (const Kind kind :
       {Kind::allreduce, Kind::allgather, Kind::broadcast, Kind::reducescatter, Kind::alltoall}) {
    CAPTURE(horo::runtime::name(kind));
    constexpr int kTensors = 8;
    auto params = tight_params();
    params.tuning.fusion_threshold = 1 << 20;
    SimJob job(2, 3, params);
    // Rank 0 submits all before rank 1 begins; rank 1 cuts nothing before its last mark.
    for (int r = 0; r < 2; ++r) {
      for (int i = 0; i < kTensors; ++i) {
        const auto signature = vector_of(kind, DType::f32, 4000);
        auto* in = job.allocate(r, signature.bytes(), false);
        auto* out = reduces(kind) || kind == Kind::broadcast
                        ? job.allocate(r, signature.bytes(), false)
                        : nullptr;
        job.add(r, "t" + std::to_string(i), signature, {.in = in, .out = out});
      }
    }
    job.submit_all();
    REQUIRE(job.run(kMostSteps));
    for (int r = 0; r < 2; ++r) {
      const auto& counters = job.engine(r).counters();
      CHECK(counters.tensors.load() == kTensors);
      CHECK(counters.entries.load() == 1);
      CHECK(counters.fused_bytes.load() == kTensors * 16'000);
    }
  }
}

TEST_CASE("tensors of different kinds, types or operations do not fuse") {
  SimJob job(2, 3, tight_params());
  for (int r = 0; r < 2; ++r) {
    auto s = vector_of(Kind::reducescatter, DType::f32, 3000);
    const auto add = [&](const char* name) {
      job.add(r, name, s, {.in = job.allocate(r, s.bytes(), false)});
    };
    add("sum");
    s.op = ReduceOp::max;
    add("max");
    s.postscale = 2;
    add("scaled");
    s.dtype = DType::i32;
    add("whole");
  }
  job.submit_all();
  REQUIRE(job.run(kMostSteps));
  CHECK(job.engine(0).counters().entries.load() == 4);
}

TEST_CASE("adasum has the same bits on all ranks, whatever is fused and wherever it lies") {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      CAPTURE(horo::runtime::name(dtype), seed);
      auto params = tight_params();
      params.tuning.fusion_threshold = seed % 3 == 0 ? 0 : std::uint64_t{1} << (12 + seed);
      const int ranks = 1 + static_cast<int>(seed % 5);
      SimJob job(ranks, seed, params);
      std::vector<DrawnOp> ops;
      for (const std::int64_t count : {0, 3, 63, 500, 4096, 30'011}) {
        DrawnOp op{.name = "t" + std::to_string(count)};
        auto s = vector_of(Kind::allreduce, dtype, count);
        s.op = ReduceOp::adasum;
        s.prescale = 0.5;
        for (int r = 0; r < ranks; ++r) {
          op.signatures.push_back(s);
          op.splits.emplace_back();
          op.inputs.push_back(horo::tests::random_elements(dtype, s.elements, job.random()));
          for (auto& byte : op.inputs.back()) byte &= 0xb7;  // Finite numbers.
        }
        ops.push_back(op);
      }
      submit_shuffled(job, ops);
      REQUIRE(job.run(kMostSteps));
      check_results(job, ops);
    }
  }
}

TEST_CASE("invalid splits on the board end the job, not the process") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    SimJob job(2, seed, tight_params());
    for (int r = 0; r < 2; ++r) job.add(r, "x", vector_of(Kind::alltoall, DType::i64, 2000), false);
    while (job.buffers(0)[0]->operation == nullptr || job.buffers(1)[0]->operation == nullptr)
      job.step();
    for (std::uint64_t i = 0; i < seed % 7; ++i) job.step();
    for (const std::uint64_t generation : {0, 1}) {
      auto* rows = job.board(0).directory().memory().splits(horo::TensorId{0}, 1, generation);
      for (int to = 0; to < 2; ++to) rows[to] = job.random()() >> (job.random()() % 64);
    }
    job.run(20'000);
    SUCCEED();
  }
}
