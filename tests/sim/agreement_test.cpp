// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <catch2/catch.hpp>

#include "tests/sim/sim_job.hpp"

using horo::Errc;
using horo::runtime::BoardParams;
using horo::runtime::DType;
using horo::runtime::Kind;
using horo::runtime::ReduceOp;
using horo::runtime::Signature;
using horo::sim::Buffer;
using horo::sim::SimJob;
using horo::sim::tight_params;
using horo::sim::vector_of;

namespace {

constexpr std::uint64_t kMostSteps = 2'000'000;  // Steps; a job that needs more hangs.

/// Values whose sum depends on the order of addition.
void fill_floats(Buffer& buffer, std::mt19937_64& random) {
  auto* values = reinterpret_cast<float*>(buffer.data());
  for (std::uint64_t i = 0; i < buffer.signature.elements; ++i) {
    values[i] = std::ldexp(static_cast<float>(random() % 2001) - 1000.0F,
                           static_cast<int>(random() % 30) - 15);
  }
}

struct Plan {
  Signature signature;
  std::string name;
  std::vector<std::vector<float>> inputs;  // by rank
};

/// Tensors of all sizes, some empty, some larger than a ring.
std::vector<Plan> draw_plans(SimJob& job, int count) {
  std::vector<Plan> plans;
  for (int i = 0; i < count; ++i) {
    const std::int64_t sizes[] = {0, 1, 3, 256, 1000, 1024, 5000, 20000};
    Plan plan{.signature = vector_of(Kind::allreduce, DType::f32, sizes[job.random()() % 8]),
              .name = "t" + std::to_string(i)};
    for (int r = 0; r < job.ranks(); ++r) {
      Buffer scratch{.signature = plan.signature};
      scratch.own.resize(std::max<std::size_t>(plan.signature.bytes(), 1));
      fill_floats(scratch, job.random());
      const auto* values = reinterpret_cast<const float*>(scratch.data());
      plan.inputs.emplace_back(values, values + plan.signature.elements);
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

/// Every rank submits every plan, in an order of its own.
void add_shuffled(SimJob& job, const std::vector<Plan>& plans, bool shared) {
  for (int r = 0; r < job.ranks(); ++r) {
    std::vector<std::size_t> order(plans.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), job.random());
    for (const auto i : order) {
      auto& buffer =
          job.add(r, plans[i].name, plans[i].signature, shared && job.random()() % 4 != 0);
      if (plans[i].signature.bytes() == 0)
        continue;  // memcpy needs valid addresses even for no bytes.
      std::memcpy(buffer.data(), plans[i].inputs[static_cast<std::size_t>(r)].data(),
                  plans[i].signature.bytes());
    }
  }
}

/// The sum in rank order, one element at a time.
std::vector<float> expected_sum(const Plan& plan) {
  std::vector<float> sum = plan.inputs[0];
  for (std::size_t r = 1; r < plan.inputs.size(); ++r) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += plan.inputs[r][i];
  }
  return sum;
}

void check_sums(SimJob& job, const std::vector<Plan>& plans) {
  for (const auto& plan : plans) {
    const auto expected = expected_sum(plan);
    for (int r = 0; r < job.ranks(); ++r) {
      for (auto& buffer : job.buffers(r)) {
        if (buffer->name != plan.name) continue;
        REQUIRE(buffer->operation->status() == Errc::ok);
        REQUIRE((expected.empty() ||
                 std::memcmp(buffer->data(), expected.data(), plan.signature.bytes()) == 0));
      }
    }
  }
}

}  // namespace

TEST_CASE("ranks submit in any order and get the same bits whatever was fused") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    auto params = tight_params();
    params.tuning.fusion_threshold = seed % 5 == 0 ? 0 : std::uint64_t{1} << (10 + seed % 12);
    params.ring_slots = 2 + static_cast<std::uint32_t>(seed % 5);
    SimJob job(1 + static_cast<int>(seed % 5), seed, params);
    const auto plans = draw_plans(job, 12);
    add_shuffled(job, plans, seed % 2 == 0);
    REQUIRE(job.run(kMostSteps));
    check_sums(job, plans);
  }
}

TEST_CASE("a name may be declared again and again with other sizes") {
  SimJob job(3, 7, tight_params());
  for (int round = 0; round < 30; ++round) {
    CAPTURE(round);
    auto plans = draw_plans(job, 4);
    std::vector<std::size_t> before;
    for (int r = 0; r < job.ranks(); ++r) before.push_back(job.buffers(r).size());
    add_shuffled(job, plans, true);
    REQUIRE(job.run(kMostSteps));
    for (int r = 0; r < job.ranks(); ++r) {
      auto& all = job.buffers(r);
      for (auto i = before[static_cast<std::size_t>(r)]; i < all.size(); ++i) {
        const auto& plan = *std::find_if(plans.begin(), plans.end(),
                                         [&](const auto& p) { return p.name == all[i]->name; });
        const auto expected = expected_sum(plan);
        REQUIRE(all[i]->operation->status() == Errc::ok);
        REQUIRE((expected.empty() ||
                 std::memcmp(all[i]->data(), expected.data(), plan.signature.bytes()) == 0));
      }
    }
  }
}

TEST_CASE("a mismatch ends that tensor on all ranks, names both values, and the job goes on") {
  SimJob job(3, 11, tight_params());
  for (int r = 0; r < 3; ++r) {
    job.add(r, "odd", vector_of(Kind::allreduce, DType::f32, r == 1 ? 5 : 4), false);
    job.add(r, "even", vector_of(Kind::allreduce, DType::f32, 100), false);
    job.add(r, "type", vector_of(Kind::allreduce, r == 2 ? DType::f64 : DType::f32, 4), false);
  }
  REQUIRE(job.run(kMostSteps));
  for (int r = 0; r < 3; ++r) {
    CHECK(job.buffers(r)[0]->operation->status() == Errc::mismatch);
    CHECK(job.buffers(r)[0]->operation->message() ==
          "tensor 'odd': ranks disagree about the shape: [4] on ranks 0, 2, [5] on rank 1");
    CHECK(job.buffers(r)[1]->operation->status() == Errc::ok);
    CHECK(
        job.buffers(r)[2]->operation->message() ==
        "tensor 'type': ranks disagree about the dtype: float32 on ranks 0, 1, float64 on rank 2");
  }
}

TEST_CASE("broadcast gives every rank the root's bytes") {
  for (const std::int64_t count : {0, 7, 3000, 50000}) {
    for (const bool shared : {false, true}) {
      CAPTURE(count, shared);
      SimJob job(4, 3, tight_params());
      for (int r = 0; r < 4; ++r) {
        auto signature = vector_of(Kind::broadcast, DType::i32, count);
        signature.root = 2;
        auto& buffer = job.add(r, "b", signature, shared);
        for (std::int64_t i = 0; i < count; ++i)
          reinterpret_cast<std::int32_t*>(buffer.data())[i] = r * 100000 + static_cast<int>(i);
      }
      REQUIRE(job.run(kMostSteps));
      for (int r = 0; r < 4; ++r) {
        auto& buffer = *job.buffers(r)[0];
        REQUIRE(buffer.operation->status() == Errc::ok);
        for (std::int64_t i = 0; i < count; ++i)
          REQUIRE(reinterpret_cast<std::int32_t*>(buffer.data())[i] == 200000 + i);
      }
    }
  }
}

TEST_CASE("allgather concatenates uneven parts in rank order") {
  for (const std::int64_t unit : {0, 3, 2000}) {
    for (const bool shared : {false, true}) {
      CAPTURE(unit, shared);
      SimJob job(3, 5, tight_params());
      for (int r = 0; r < 3; ++r) {
        for (const char* name : {"g", "h"}) {  // Two, so that they may fuse.
          const auto rows = unit * r;          // Rank 0 has none.
          auto& buffer = job.add(r, name, vector_of(Kind::allgather, DType::i64, rows), shared);
          for (std::int64_t i = 0; i < rows; ++i)
            reinterpret_cast<std::int64_t*>(buffer.data())[i] = r * 1000000 + i;
        }
      }
      REQUIRE(job.run(kMostSteps));
      for (int r = 0; r < 3; ++r) {
        for (auto& buffer : job.buffers(r)) {
          const auto& operation = *buffer->operation;
          REQUIRE(operation.status() == Errc::ok);
          CHECK(operation.rows == std::vector<std::int64_t>{0, unit, 2 * unit});
          REQUIRE(operation.result_bytes == static_cast<std::uint64_t>(3 * unit * 8));
          const auto* at = static_cast<const std::int64_t*>(operation.result);
          for (int q = 0; q < 3; ++q) {
            for (std::int64_t i = 0; i < unit * q; ++i) REQUIRE(*at++ == q * 1000000 + i);
          }
        }
      }
    }
  }
}

TEST_CASE("small tensors travel with their marks and large shared ones are not copied") {
  SimJob job(2, 13, tight_params());
  for (int r = 0; r < 2; ++r) {
    job.add(r, "small", vector_of(Kind::allreduce, DType::f32, 8), false);
    job.add(r, "large", vector_of(Kind::allreduce, DType::f32, 10000), true);
  }
  REQUIRE(job.run(kMostSteps));
  for (int r = 0; r < 2; ++r) {
    CHECK(job.engine(r).counters().direct_bytes.load() == 40000);
    CHECK(job.engine(r).backend().started() == 1);
  }
}

TEST_CASE("with lent memory, ordinary tensors up to a size bypass the rings") {
  constexpr auto kMost =
      static_cast<std::int64_t>(horo::runtime::LentMemory::kMostOfOne / sizeof(float));
  SimJob job(3, 19, tight_params());
  for (int r = 0; r < 3; ++r) job.lend(r);
  const auto sum = [&job](const char* name, std::int64_t count) {
    std::vector<Buffer*> buffers;
    for (int r = 0; r < 3; ++r) {
      buffers.push_back(&job.add(r, name, vector_of(Kind::allreduce, DType::f32, count), false));
      std::fill_n(reinterpret_cast<float*>(buffers.back()->data()), count,
                  static_cast<float>(r + 1));
    }
    REQUIRE(job.run(kMostSteps));
    for (auto* buffer : buffers) {
      const auto* values = reinterpret_cast<const float*>(buffer->data());
      CHECK(std::all_of(values, values + count, [](float v) { return v == 6; }));
    }
  };
  for (int round = 0; round < 3; ++round) {
    sum("small", kMost / 3);
    sum("most", kMost);
  }
  CHECK(job.board(0).region().area(0).copied_in.load() == 0);
  CHECK(job.engine(0).counters().direct_bytes.load() == 0);  // Tensors in lent memory are copied.
  sum("large", kMost + 1);
  CHECK(job.board(0).region().area(0).copied_in.load() != 0);
}

TEST_CASE("a rank with more in flight than it may borrow uses the rings until all of it is done") {
  constexpr int kRanks = 4;
  constexpr auto kShare = horo::runtime::LentMemory::kMost / kRanks;
  constexpr auto kCount = static_cast<std::int64_t>(kShare / 2 / sizeof(float));
  SimJob job(kRanks, 23, tight_params());
  for (int r = 0; r < kRanks; ++r) job.lend(r);
  const auto sum = [&](std::initializer_list<const char*> names) {
    std::vector<Buffer*> buffers;
    for (int r = 0; r < kRanks; ++r) {
      for (const auto* name : names) {
        buffers.push_back(&job.add(r, name, vector_of(Kind::allreduce, DType::f32, kCount), false));
        std::fill_n(reinterpret_cast<float*>(buffers.back()->data()), kCount,
                    static_cast<float>(r + 1));
      }
    }
    REQUIRE(job.run(kMostSteps));
    for (auto* buffer : buffers) {
      const auto* values = reinterpret_cast<const float*>(buffer->data());
      CHECK(std::all_of(values, values + kCount, [](float v) { return v == 10; }));
    }
    return job.board(0).region().area(0).copied_in.load();
  };
  CHECK(sum({"a", "b"}) == 0);
  const auto staged = sum({"a", "b", "c", "d"});
  CHECK(staged != 0);
  CHECK(sum({"c", "d"}) == staged);
}

TEST_CASE("a sum in the arenas completes without a rank that has submitted it and then stopped") {
  SimJob job(3, 17, tight_params());
  const auto signature = vector_of(Kind::allreduce, DType::f32, 40000);
  const auto add = [&](int rank, bool shared) {
    auto& buffer = job.add(rank, "late", signature, shared);
    std::fill_n(reinterpret_cast<float*>(buffer.data()), 40000, static_cast<float>(rank + 1));
    return &buffer;
  };
  const auto is_sum = [](Buffer& buffer) {
    const auto* values = reinterpret_cast<const float*>(buffer.data());
    return buffer.operation->status() == Errc::ok &&
           std::all_of(values, values + 40000, [](float v) { return v == 6; });
  };
  std::vector<Buffer*> first;
  for (int r = 0; r < 3; ++r) first.push_back(add(r, true));
  job.submit_all();
  for (int i = 0; i < 10'000 && !(first[0]->operation->done() && first[1]->operation->done()); ++i)
    job.sets(i % 2).progress();
  CHECK(is_sum(*first[0]));
  CHECK(is_sum(*first[1]));
  CHECK(job.board(2).region().area(2).cursor.load() == 0);
  // The next tensors of these two lie at other places. The late rank must not confuse them.
  std::vector<Buffer*> second{add(0, false), add(1, false)};
  job.submit_all();
  for (int i = 0; i < 100; ++i) job.sets(2).progress();
  CHECK(is_sum(*first[2]));
  second.push_back(add(2, false));
  REQUIRE(job.run(kMostSteps));
  for (auto* const buffer : second) CHECK(is_sum(*buffer));
}

TEST_CASE("one name too many is refused with the knob to raise") {
  auto params = tight_params();
  params.capacity = 16;
  SimJob job(1, 1, params);
  const auto signature = vector_of(Kind::allreduce, DType::f32, 1);
  // Names that are declared on the board alone stay pinned.
  for (int i = 0; i < 16; ++i)
    REQUIRE(job.board(0).directory().declare("n" + std::to_string(i), signature));
  const auto over = job.board(0).directory().declare("one too many", signature);
  REQUIRE_FALSE(over);
  CHECK(over.error().code == Errc::resource_exhausted);
  CHECK(over.error().message.find("HORO_CACHE_CAPACITY") != std::string::npos);
}
