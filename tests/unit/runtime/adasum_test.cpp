// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/adasum.hpp"

#include <cmath>
#include <cstring>

#include <catch2/catch.hpp>

#include "tests/unit/kernels/reference.hpp"

using horo::kernels::DType;
using horo::runtime::adasum_slice;
using horo::runtime::adasum_tree;

namespace {

using Vector = std::vector<double>;

Vector pair_of(const Vector& a, const Vector& b) {
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  const double least = std::sqrt(2.2250738585072014e-308);
  const double ca = aa < least ? 1 : 1 - ab / (2 * aa);
  const double cb = bb < least ? 1 : 1 - ab / (2 * bb);
  Vector out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = ca * a[i] + cb * b[i];
  return out;
}

/// Follows the definition: the vectors of every level are stored.
Vector by_definition(std::vector<Vector> groups) {
  while (groups.size() > 1) {
    std::vector<Vector> next;
    for (std::size_t i = 0; i < groups.size(); i += 2)
      next.push_back(i + 1 < groups.size() ? pair_of(groups[i], groups[i + 1]) : groups[i]);
    groups = std::move(next);
  }
  return groups.front();
}

std::vector<Vector> draw(int ranks, std::size_t count, std::mt19937_64& random) {
  std::vector<Vector> inputs(static_cast<std::size_t>(ranks), Vector(count));
  for (auto& input : inputs) {
    for (auto& value : input) value = static_cast<double>(random() % 2001) / 500 - 1.5;
  }
  return inputs;
}

Vector run(DType dtype, const std::vector<Vector>& inputs, double scale = 1) {
  const auto count = inputs[0].size();
  std::vector<std::vector<float>> floats;
  std::vector<const void*> sources;
  for (const auto& input : inputs) floats.emplace_back(input.begin(), input.end());
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    sources.push_back(dtype == DType::f64 ? static_cast<const void*>(inputs[r].data())
                                          : floats[r].data());
  }
  Vector out(count);
  std::vector<float> out_floats(count);
  horo::runtime::adasum(dtype, scale, sources, count,
                        dtype == DType::f64 ? static_cast<void*>(out.data()) : out_floats.data());
  return dtype == DType::f64 ? out : Vector(out_floats.begin(), out_floats.end());
}

}  // namespace

TEST_CASE("adasum of any number of ranks equals the tree of pairs") {
  std::mt19937_64 random(1);
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8}) {
    for (const std::size_t count : {1, 15, 64, 1000, 5003}) {
      CAPTURE(ranks, count);
      const auto inputs = draw(ranks, count, random);
      const auto expected = by_definition(inputs);
      const auto exact = run(DType::f64, inputs, 2);
      for (std::size_t i = 0; i < count; ++i)
        REQUIRE(exact[i] == Approx(2 * expected[i]).epsilon(1e-11).margin(1e-11));
      const auto single = run(DType::f32, inputs);
      for (std::size_t i = 0; i < count; ++i)
        REQUIRE(single[i] == Approx(expected[i]).epsilon(1e-5).margin(1e-5));
    }
  }
}

TEST_CASE("adasum of orthogonal gradients is their sum, of equal ones the gradient itself") {
  const Vector x{1, 2, 0, 0};
  const Vector y{0, 0, 3, 4};
  CHECK(run(DType::f32, {x, y}) == Vector{1, 2, 3, 4});
  CHECK(run(DType::f32, {x, x}) == x);
  CHECK(run(DType::f32, {x, x, x, x}) == x);
  const Vector none(4);
  CHECK(run(DType::f32, {x, none}) == x);
  CHECK(run(DType::f64, {none, none}) == none);
}

TEST_CASE("gradients that almost cancel leave no noise behind") {
  // At the second level the first pair's vector is tiny: its products come from the vector itself,
  // not from a difference of large products.
  Vector a(1000);
  Vector b(1000);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = 1 + static_cast<double>(i) / 1024;
    b[i] = -a[i];
  }
  b[3] += 1.0 / (1 << 20);
  Vector c(1000, 0.5);
  const auto expected = by_definition({a, b, c});
  const auto got = run(DType::f64, {a, b, c});
  for (std::size_t i = 0; i < a.size(); ++i)
    REQUIRE(got[i] == Approx(expected[i]).epsilon(1e-6).margin(1e-9));
}

TEST_CASE(
    "adasum's kernels give the same bits on every instruction set and for every division into "
    "chunks") {
  std::mt19937_64 random(2);
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    const std::size_t count = 1000;
    std::vector<horo::tests::Bytes> inputs;
    std::vector<const void*> sources;
    for (int r = 0; r < 3; ++r)
      inputs.push_back(horo::tests::random_elements(dtype, count, random));
    for (const auto& input : inputs) sources.push_back(input.data());
    const double weights[] = {1, 0.75, -0.3};
    std::vector<horo::tests::Bytes> results;
    std::vector<horo::kernels::DotsState> states;
    for (const auto isa : horo::tests::isas()) {
      for (const std::size_t cut : {0, 16, 640}) {
        horo::kernels::DotsState state;
        horo::tests::Bytes out(count * size_of(dtype));
        for (const auto& [first, length] :
             {std::pair<std::size_t, std::size_t>{0, cut}, {cut, count - cut}}) {
          std::vector<const void*> at;
          for (const auto* source : sources)
            at.push_back(static_cast<const std::uint8_t*>(source) + first * size_of(dtype));
          horo::kernels::dots_kernel(dtype, isa)(state, {at.data(), weights, 2},
                                                 {at.data() + 2, weights + 2, 1}, length);
          void* const to = out.data() + first * size_of(dtype);
          horo::kernels::weighted_sum_kernel(dtype, isa)(&to, 1, {at.data(), weights, 3}, length);
        }
        results.push_back(out);
        states.push_back(state);
      }
    }
    for (std::size_t i = 1; i < results.size(); ++i) {
      CAPTURE(horo::runtime::name(dtype), i);
      CHECK(results[i] == results[0]);
      for (int product = 0; product < 3; ++product) {
        for (int lane = 0; lane < 16; ++lane) {
          const double x = states[i].lanes[product][lane];
          const double y = states[0].lanes[product][lane];
          CHECK((std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y))));
        }
      }
    }
  }
}

TEST_CASE("slices cover a tensor in units, and each level of the tree covers every rank once") {
  for (const std::uint64_t elements : {0ULL, 1ULL, 64ULL, 1000ULL, (1ULL << 33U) + 1}) {
    std::uint64_t next = 0;
    for (int r = 0; r < 5; ++r) {
      const auto slice = adasum_slice(elements, 5, r);
      if (slice.count != 0) {
        CHECK(slice.first == next);
        CHECK(slice.first % 64 == 0);
      }
      next += slice.count;
    }
    CHECK(next == elements);
  }
  CHECK(adasum_tree(1).empty());
  const auto tree = adasum_tree(7);
  REQUIRE(tree.size() == 3);
  CHECK(tree[0].size() == 3);
  CHECK(tree[1].size() == 2);
  CHECK(tree[1][1].last == 7);
  CHECK(tree[2].size() == 1);
}
