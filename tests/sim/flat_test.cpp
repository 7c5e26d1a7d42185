// SPDX-License-Identifier: Apache-2.0
// N ranks in one process over a wire in memory: random buckets against a trivial reference, and
// every message failing in turn.
#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include <catch2/catch.hpp>

#include "runtime/backends/flat/flat_backend.hpp"
#include "tests/support/memory_transport.hpp"
#include "tests/support/random_buckets.hpp"

using namespace horo;
using namespace horo::runtime;
using namespace horo::test;

namespace {

std::vector<std::unique_ptr<FlatBackend>> make_backends(
    std::size_t n, bool shares_hosts, std::uint64_t segment, std::int64_t first_rank_fails_at = -1,
    MessageMemory messages = MessageMemory::staging) {
  auto ether = std::make_shared<Ether>();
  ether->closed.resize(n);
  std::vector<std::unique_ptr<FlatBackend>> backends;
  for (std::size_t r = 0; r < n; ++r) {
    const auto me = static_cast<int>(r);
    backends.push_back(std::make_unique<FlatBackend>(
        std::make_unique<MemoryTransport>(ether, me, r == 0 ? first_rank_fails_at : -1),
        Mesh{.position = me, .size = static_cast<int>(n), .shares_hosts = shares_hosts},
        FlatOptions{.name = "memory", .segment = segment, .messages = messages}));
  }
  return backends;
}

/// Runs until all buckets are done or broken; the test's time limit ends a hang.
void settle(const std::vector<std::unique_ptr<FlatBackend>>& backends) {
  for (const auto& backend : backends) {
    while (backend->completed() < backend->started() && backend->health())
      std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("random buckets of every kind, type and operation equal the reference") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 30; ++round) {
    const auto n = 1 + random() % 7;
    const bool shares_hosts = random() % 2 == 0;
    // From one segment to hundreds; the tensors are small, so this is what makes rings of them.
    const std::uint64_t segment = std::uint64_t{16} << random() % 10;
    const auto messages = random() % 2 == 0 ? MessageMemory::staging : MessageMemory::tensors;
    auto backends = make_backends(n, shares_hosts, segment, -1, messages);
    Maker maker{random, n};
    std::vector<Case> cases;
    for (int i = 0; i < 12; ++i) cases.push_back(maker.make());
    for (std::size_t r = 0; r < n; ++r) {
      for (auto& c : cases) REQUIRE(backends[r]->start(bucket_of(c, r)));
    }
    settle(backends);
    for (std::size_t r = 0; r < n; ++r) {
      REQUIRE(backends[r]->health());
      REQUIRE(backends[r]->completed() == cases.size());
    }
    for (const auto& c : cases) {
      CAPTURE(n, segment, shares_hosts, static_cast<int>(c.like.kind), name(c.like.dtype),
              name(c.like.op), c.like.prescale, c.like.postscale);
      for (const auto& t : c.tensors) {
        for (std::size_t r = 0; r < n; ++r) REQUIRE(t.out[r] == t.expected[r]);
      }
    }
  }
}

TEST_CASE("buckets that are large enough for rings and halves equal the reference") {
  std::mt19937_64 random(1);
  for (const std::size_t n : {3U, 4U, 7U, 12U}) {
    for (const std::uint64_t count : {10'000U, 100'003U, 400'001U}) {
      for (const auto op : {ReduceOp::average, ReduceOp::sum}) {
        for (const auto dtype : {DType::f32, DType::i8, DType::bf16}) {
          auto backends = make_backends(n, true, 4U << 20U);
          Case c{.like = {.op = op, .dtype = dtype, .prescale = 2, .postscale = 4}};
          c.tensors.push_back(Maker{random, n}.same_everywhere(c.like, count));
          for (const auto& expected : c.tensors[0].expected)
            c.tensors[0].out.emplace_back(expected.size());
          for (std::size_t r = 0; r < n; ++r) REQUIRE(backends[r]->start(bucket_of(c, r)));
          settle(backends);
          CAPTURE(n, count, name(op), name(dtype));
          for (std::size_t r = 0; r < n; ++r)
            REQUIRE(c.tensors[0].out[r] == c.tensors[0].expected[r]);
        }
      }
    }
  }
}

TEST_CASE(
    "a sum that runs in the tensor's memory takes no copy, or one where the result is apart") {
  constexpr std::uint64_t kCount = 300'000;
  for (const std::size_t n : {2U, 5U}) {
    for (const bool in_place : {true, false}) {
      auto backends = make_backends(n, true, 1U << 20U, -1, MessageMemory::tensors);
      std::vector<std::vector<float>> in(n), out(n);
      for (std::size_t r = 0; r < n; ++r) {
        in[r].assign(kCount, static_cast<float>(r + 1));
        out[r] = in_place ? in[r] : std::vector<float>(kCount, 7);
        Bucket bucket{.like = {.prescale = 2, .elements = kCount}};
        bucket.parts.push_back({.in = in_place ? out[r].data() : in[r].data(),
                                .out = out[r].data(),
                                .elements = kCount});
        REQUIRE(backends[r]->start(std::move(bucket)));
      }
      settle(backends);
      for (std::size_t r = 0; r < n; ++r) {
        REQUIRE(backends[r]->health());
        CHECK(out[r] == std::vector<float>(kCount, static_cast<float>(n * (n + 1))));
        if (!in_place) CHECK(in[r] == std::vector<float>(kCount, static_cast<float>(r + 1)));
        CHECK(backends[r]->copied().out == 0);
        CHECK((backends[r]->copied().in == 0) == in_place);
      }
    }
  }
}

TEST_CASE("rounded sums end with the same bits on all ranks, within the documented error") {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<float> drawn(-1, 1);
  constexpr std::uint64_t kCount = 100'003;
  for (const std::size_t n : {2U, 5U, 18U}) {  // Direct, direct, a ring.
    for (const auto wire : {WireDType::bf16, WireDType::f16}) {
      std::vector<std::vector<float>> in(n, std::vector<float>(kCount));
      std::vector<std::vector<float>> out(n, std::vector<float>(kCount));
      for (auto& values : in) {
        for (auto& value : values) value = drawn(random);
      }
      auto backends = make_backends(n, true, 4U << 20U);
      for (std::size_t r = 0; r < n; ++r) {
        Bucket bucket{.like = {.elements = kCount, .wire = wire}};
        bucket.parts.push_back({.in = in[r].data(), .out = out[r].data(), .elements = kCount});
        REQUIRE(backends[r]->start(std::move(bucket)));
      }
      settle(backends);
      CAPTURE(n, name(dtype_between_hosts(wire, DType::f32)), backends[0]->sent());
      for (std::size_t r = 1; r < n; ++r) REQUIRE(out[r] == out[0]);
      // Between more than 16 ranks every step of the ring rounds the sum so far.
      const double unit = wire == WireDType::bf16 ? 1.0 / 256 : 1.0 / 2048;
      const double roundings = n > 16 ? static_cast<double>(n) : 2;
      for (std::uint64_t i = 0; i < kCount; ++i) {
        double exact = 0, size = 0;
        for (const auto& values : in) {
          exact += values[i];
          size += std::abs(static_cast<double>(values[i]));
        }
        REQUIRE(std::abs(out[0][i] - exact) <= 1.01 * roundings * unit * size);
      }
    }
  }
}

TEST_CASE("error feedback makes sums over many steps exact where each one is rounded") {
  constexpr std::uint64_t kCount = 40'000;  // One rank adds each element up for all.
  constexpr int kSteps = 256;
  const bool feeds_back = GENERATE(true, false);
  auto backends = make_backends(3, false, 1U << 20U);
  const float value = 1 + 1.0F / 1024;  // bfloat16 has no number between 1 and 1 + 1/128.
  std::vector<float> in(kCount, value);
  std::vector<std::vector<float>> remainders(3, std::vector<float>(2 * kCount, 0));
  std::vector<std::vector<float>> out(3, std::vector<float>(kCount));
  double sum = 0;
  for (int step = 0; step < kSteps; ++step) {
    for (std::size_t r = 0; r < 3; ++r) {
      Bucket bucket{.like = {.prescale = 4, .elements = kCount, .wire = WireDType::bf16}};
      bucket.parts.push_back(
          {.in = in.data(),
           .out = out[r].data(),
           .elements = kCount,
           .remainder = feeds_back ? remainders[r].data() : nullptr,
           .result_remainder = feeds_back ? remainders[r].data() + kCount : nullptr});
      REQUIRE(backends[r]->start(std::move(bucket)));
    }
    settle(backends);
    REQUIRE(std::all_of(out[1].begin(), out[1].end(), [&](float x) { return x == out[0][0]; }));
    sum += out[0][0];
  }
  const double error = std::abs(sum / kSteps - 12 * value);
  if (feeds_back) {
    CHECK(error < 0.2 / kSteps);
  } else {
    CHECK(error > 0.01);
  }
}

TEST_CASE("float16 results that fit do not overflow on the way between many ranks") {
  constexpr std::size_t kRanks = 18;
  std::mt19937_64 random(1);
  for (const std::uint64_t count : {1'000U, 100'003U, 400'001U}) {  // Doubling, halves, a ring.
    auto backends = make_backends(kRanks, true, 4U << 20U);
    auto cases = Maker{random, kRanks}.beyond_halves(count);
    for (std::size_t r = 0; r < kRanks; ++r) {
      for (auto& c : cases) REQUIRE(backends[r]->start(bucket_of(c, r)));
    }
    settle(backends);
    for (const auto& c : cases) {
      CAPTURE(count, name(c.like.op), c.like.prescale, c.like.postscale);
      for (std::size_t r = 0; r < kRanks; ++r)
        REQUIRE(c.tensors[0].out[r] == c.tensors[0].expected[r]);
    }
  }
}

TEST_CASE(
    "whichever message fails, every rank ends in an error and nobody touches a buffer after") {
  constexpr std::size_t kRanks = 3;
  bool untouched = false;
  for (std::int64_t fails_at = 0; !untouched; ++fails_at) {
    auto backends = make_backends(kRanks, true, 64 * kRanks, fails_at);
    std::vector<std::vector<float>> values(kRanks, std::vector<float>(200, 1));
    for (std::size_t r = 0; r < kRanks; ++r) {
      Bucket bucket{.like = {.elements = 200}};
      bucket.parts.push_back({.in = values[r].data(), .out = values[r].data(), .elements = 200});
      REQUIRE(backends[r]->start(std::move(bucket)));
    }
    settle(backends);
    untouched = backends[0]->health().has_value();
    for (std::size_t r = 0; r < kRanks; ++r) {
      // A rank that had all its data may be done before it could see the failure.
      if (!backends[r]->health()) CHECK(backends[r]->health().error().code == Errc::peer_lost);
      backends[r]->abort();
      std::fill(values[r].begin(), values[r].end(), -7);
    }
    for (const auto& value : values)
      REQUIRE(std::all_of(value.begin(), value.end(), [](float x) { return x == -7; }));
    REQUIRE(fails_at < 1000);
  }
}

TEST_CASE("a bucket whose peers never come is given up by abort") {
  auto backends = make_backends(2, false, 1024);
  std::vector<float> values(100000, 1);
  Bucket bucket{.like = {.elements = values.size()}};
  bucket.parts.push_back({.in = values.data(), .out = values.data(), .elements = values.size()});
  REQUIRE(backends[0]->start(std::move(bucket)));
  backends[0]->abort();
  CHECK(backends[0]->completed() == 0);
}

TEST_CASE("reductions that do not exist are refused at the start") {
  auto backends = make_backends(1, false, 1024);
  Bucket bucket{.like = {.dtype = static_cast<DType>(9), .elements = 1}};
  const auto status = backends[0]->start(std::move(bucket));
  if (!status) CHECK(status.error().code == Errc::unsupported);
}
