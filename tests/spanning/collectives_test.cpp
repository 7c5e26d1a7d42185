// SPDX-License-Identifier: Apache-2.0
// Random collectives of all kinds between hosts, compared with a trivial reference. HORO_SIM_SEED
// repeats a run.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include <catch2/catch.hpp>

#include "tests/sim/drawn_op.hpp"
#include "tests/spanning/hosts.hpp"

using namespace horo;            // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;   // NOLINT(google-build-using-namespace): a test of it
using namespace horo::spanning;  // NOLINT(google-build-using-namespace): a test of it

namespace {

/// One rank's side of one drawn operation.
struct Side {
  const sim::DrawnOp* op = nullptr;
  sim::Buffer buffer;
  std::vector<std::byte> in, out;
};

std::string submit(Session& session, int rank, Side& side) {
  const auto& op = *side.op;
  const auto me = static_cast<std::size_t>(rank);
  const auto& s = op.signatures[me];
  side.in.resize(op.inputs[me].size() + 1);
  if (!op.inputs[me].empty()) std::memcpy(side.in.data(), op.inputs[me].data(), side.in.size() - 1);
  side.out.resize(op.expected(rank).size() + 1);
  side.buffer.splits = op.splits[me];
  side.buffer.given =
      Submission{.in = side.in.data(), .out = side.out.data(), .splits = side.buffer.splits};
  if (first_extent_is_free(s.kind)) side.buffer.given->out = nullptr;
  const auto id = session.declare(kWorld, op.name, s);
  if (!id) return id.error().message;
  const auto operation = session.submit(kWorld, *id, *side.buffer.given);
  if (!operation) return operation.error().message;
  side.buffer.operation = *operation;
  return {};
}

/// Every rank submits all operations in an order of its own and waits for them, three times.
/// Returns what went wrong on any rank; empty: nothing.
std::string run_all(TestHosts& hosts, const std::vector<sim::DrawnOp>& ops, std::uint64_t seed) {
  std::vector<std::string> wrong(static_cast<std::size_t>(hosts.size()));
  hosts.run([&](Session& session, int rank) {
    std::mt19937_64 own(seed + static_cast<std::uint64_t>(rank));
    auto& text = wrong[static_cast<std::size_t>(rank)];
    for (int pass = 0; pass < times(3, 2); ++pass) {
      std::vector<Side> sides(ops.size());
      for (std::size_t i = 0; i < ops.size(); ++i) sides[i].op = &ops[i];
      std::shuffle(sides.begin(), sides.end(), own);
      for (auto& side : sides) text += submit(session, rank, side);
      for (auto& side : sides) {
        if (side.buffer.operation == nullptr) continue;
        if (!wait_for(session, *side.buffer.operation)) {
          text += side.op->text() + " hangs";
          static_cast<void>(new auto(std::move(sides)));  // NOLINT: others may write to them yet
          return;
        }
        const auto difference = sim::difference(*side.op, rank, side.buffer);
        if (!difference.empty()) text += side.op->text() + ": " + difference + "\n";
        session.operations().put(*side.buffer.operation);
      }
    }
  });
  return std::accumulate(wrong.begin(), wrong.end(), std::string());
}

}  // namespace

TEST_CASE(
    "collectives between hosts, submitted in any order, give the results of a trivial reference") {
  const auto base = run_seed();
  const std::vector<Layout> layouts = {
      {{0}, {1}}, {{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}, {{0, 1, 2}, {3}, {4}}};
  std::uint64_t seed = base;
  for (const auto& layout : drawn_from(layouts)) {
    TestHosts hosts(layout);
    for (int round = 0; round < times(3); ++round, ++seed) {
      CAPTURE(base, seed, round, layout.size());
      std::mt19937_64 random(seed);
      hosts.options.board.tuning.fusion_threshold = std::uint64_t{1} << (8 + random() % 14);
      std::vector<sim::DrawnOp> ops;
      while (ops.size() < static_cast<std::size_t>(times(20, 8)))
        ops.push_back(sim::draw_op(hosts.size(), random, "t" + std::to_string(ops.size())));
      for (auto& op : ops) sim::make_exact(op, random);
      CHECK(run_all(hosts, ops, seed) == "");
    }
  }
}

TEST_CASE("an Adasum between hosts gives the same bits as one process") {
  const auto seed = run_seed();
  const std::vector<Layout> layouts = {{{0}, {1}}, {{0, 1}, {2}}, {{0, 3}, {1, 2, 4}}};
  for (const auto& layout : drawn_from(layouts)) {
    TestHosts hosts(layout);
    CAPTURE(seed, layout.size());
    std::mt19937_64 random(seed);
    std::vector<sim::DrawnOp> ops;
    const std::vector dtypes = {DType::f32, DType::f64, DType::f16, DType::bf16};
    for (const auto dtype : drawn_from(dtypes)) {
      for (const std::int64_t count : {0, 5, 1000, 9001}) {
        auto& op = ops.emplace_back();
        op.name = fmt::format("{}{}", name(dtype), count);
        auto signature = sim::vector_of(Kind::allreduce, dtype, count);
        signature.op = ReduceOp::adasum;
        signature.prescale = count == 5 ? 0.5 : 1;
        for (int r = 0; r < hosts.size(); ++r) {
          op.signatures.push_back(signature);
          op.inputs.push_back(tests::random_elements(dtype, signature.elements, random));
          op.splits.emplace_back();
        }
        sim::make_exact(op, random);
      }
    }
    CHECK(run_all(hosts, ops, seed) == "");
  }
}

TEST_CASE("all-reduces without hierarchy give the same sums") {
  const auto seed = run_seed();
  TestHosts hosts({{0, 1}, {2, 3}, {4}});
  hosts.options.hosts.connect.hierarchical = false;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::vector<sim::DrawnOp> ops;
  while (ops.size() < static_cast<std::size_t>(times(20, 6))) {
    ops.push_back(sim::draw_op(hosts.size(), random, "t" + std::to_string(ops.size())));
    sim::make_exact(ops.back(), random);
  }
  CHECK(run_all(hosts, ops, seed) == "");
}

namespace {

/// A sum of `values` in which elements travel rounded.
std::string sum_rounded(Session& session, const std::string& name, const Signature& like,
                        std::vector<float>& values) {
  const auto id = session.declare(kWorld, name, like);
  if (!id) return id.error().message;
  const auto operation = session.submit(kWorld, *id, {.in = values.data(), .out = values.data()});
  if (!operation) return operation.error().message;
  if (!wait_for(session, **operation)) return "hangs";
  const auto end = (*operation)->error();
  session.operations().put(**operation);
  return end.message;
}

Signature rounded_like(std::int64_t count, WireDType wire, bool feeds_back) {
  auto like = sim::vector_of(Kind::allreduce, DType::f32, count);
  like.wire = wire;
  like.feedback = feeds_back ? 1 : 0;
  return like;
}

}  // namespace

TEST_CASE("sums that are rounded between hosts have the same bits everywhere, on every path") {
  const std::vector<Layout> layouts = {{{0}, {1}}, {{0, 1}, {2, 3}}, {{0, 2}, {1}}};
  for (const auto& layout : drawn_from(layouts)) {
    for (const bool deterministic : {false, true}) {
      for (const std::int64_t count : {1, 2000, 70001}) {  // Exchange, direct; by hosts.
        TestHosts hosts(layout);
        hosts.options.hosts.connect.deterministic = deterministic;
        std::vector<std::vector<float>> out(static_cast<std::size_t>(hosts.size()));
        CAPTURE(layout.size(), hosts.size(), deterministic, count);
        hosts.run([&](Session& session, int rank) {
          auto& mine = out[static_cast<std::size_t>(rank)];
          for (std::int64_t i = 0; i < count; ++i)
            mine.push_back(1.0F / static_cast<float>(i + rank + 3));
          sum_rounded(session, "t", rounded_like(count, WireDType::bf16, false), mine);
        });
        for (const auto& one : out) REQUIRE(one == out[0]);
        for (std::int64_t i = 0; i < count; ++i) {
          double exact = 0;
          for (int r = 0; r < hosts.size(); ++r)
            exact += static_cast<double>(1.0F / static_cast<float>(i + r + 3));
          REQUIRE(std::abs(out[0][static_cast<std::size_t>(i)] - exact) <= exact * 2.02 / 256);
        }
      }
    }
  }
}

TEST_CASE("bytes that are rounded between hosts are counted, and no others") {
  for (const auto& layout : {Layout{{0}, {1}}, Layout{{0, 1}}}) {
    TestHosts hosts(layout);
    std::vector<std::uint64_t> counted(2);
    hosts.run([&](Session& session, int rank) {
      std::vector<float> values(3000, 1);
      sum_rounded(session, "whole", rounded_like(3000, WireDType::none, false), values);
      sum_rounded(session, "rounded", rounded_like(3000, WireDType::bf16, false), values);
      sum_rounded(session, "small", rounded_like(5, WireDType::f16, true), values);
      counted[static_cast<std::size_t>(rank)] = session.counters().rounded_bytes;
    });
    const std::uint64_t all = layout.size() == 1 ? 0 : (3000 + 5) * sizeof(float);
    CHECK(counted == std::vector<std::uint64_t>(2, all));
  }
}

TEST_CASE("a session keeps what the rounding between hosts leaves until the tensor is redeclared") {
  TestHosts hosts({{0, 1}, {2}});
  constexpr std::int64_t kCount = 40'000;  // One rank adds each element up for all.
  constexpr int kSteps = 64;
  std::vector<double> means(6);
  hosts.run([&](Session& session, int rank) {
    for (std::size_t pass = 0; pass < 2; ++pass) {
      const auto like = rounded_like(kCount, WireDType::bf16, pass == 0);
      double sum = 0;
      for (int step = 0; step < kSteps; ++step) {
        std::vector<float> values(kCount, 1 + 1.0F / 1024);
        sum_rounded(session, "t", like, values);
        sum += values[1234];
      }
      means[static_cast<std::size_t>(rank) * 2 + pass] = sum / kSteps;
    }
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(std::abs(means[rank * 2] - 3 * (1 + 1.0 / 1024)) < 0.03 / kSteps);
    CHECK(means[rank * 2 + 1] == 3);
  }
}

TEST_CASE("ranks that differ in the type on the wire all learn both values") {
  TestHosts hosts({{0, 1}, {2}});
  std::vector<std::string> ends(3);
  hosts.run([&](Session& session, int rank) {
    std::vector<float> values(2000, 1);
    const auto wire = rank == 2 ? WireDType::none : WireDType::bf16;
    ends[static_cast<std::size_t>(rank)] =
        sum_rounded(session, "t", rounded_like(2000, wire, false), values);
  });
  for (const auto& end : ends) {
    CHECK(end.find("tensor 't': ranks disagree about the wire dtype") == 0);
    CHECK(end.find("bfloat16 on ranks 0, 1") != std::string::npos);
    CHECK(end.find("none on rank 2") != std::string::npos);
  }
}

TEST_CASE("deterministic sums add in rank order between hosts too") {
  const auto seed = run_seed();
  TestHosts hosts({{0, 1}, {2, 3, 4}});
  hosts.options.hosts.connect.deterministic = true;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::vector<sim::DrawnOp> ops;
  while (ops.size() < static_cast<std::size_t>(times(12, 4))) {
    auto op = sim::draw_op(hosts.size(), random, "t" + std::to_string(ops.size()));
    if (op.kind() == Kind::allreduce) ops.push_back(std::move(op));
  }
  const std::vector<std::uint64_t> thresholds = {0, 1U << 20U};
  for (const auto threshold : drawn_from(thresholds)) {
    hosts.options.board.tuning.fusion_threshold = threshold;
    CHECK(run_all(hosts, ops, seed) == "");
  }
}

TEST_CASE("collectives between hosts give the same results when they are encrypted") {
  const auto seed = run_seed();
  TestHosts hosts({{0, 1}, {2, 3}});
  hosts.options.hosts.connect.encryption = kv::Encryption::on;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::vector<sim::DrawnOp> ops;
  while (ops.size() < static_cast<std::size_t>(times(12, 4))) {
    ops.push_back(sim::draw_op(hosts.size(), random, "t" + std::to_string(ops.size())));
    sim::make_exact(ops.back(), random);
  }
  CHECK(run_all(hosts, ops, seed) == "");
}
