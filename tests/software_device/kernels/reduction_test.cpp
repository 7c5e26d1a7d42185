// SPDX-License-Identifier: Apache-2.0
// The kernels that reduce: the same bits as the reductions of host memory, and Adasum.
#include <cmath>

#include <catch2/catch.hpp>

#include "runtime/bucket/adasum.hpp"
#include "runtime/kernels/kernels.hpp"
#include "tests/software_device/kernels/kernel_memory.hpp"

using horo::runtime::DeviceSpan;
using horo::runtime::DType;
using horo::runtime::is_floating;
using horo::runtime::ReduceOp;
using horo::runtime::size_of;
using horo::tests::Bytes;
using horo::tests::elements_of;
using horo::tests::KernelMemory;
using horo::tests::value_at;

namespace {

constexpr std::array kOps{ReduceOp::sum, ReduceOp::average, ReduceOp::min, ReduceOp::max,
                          ReduceOp::product};

/// Some lengths, which come one after another in every input.
constexpr std::array<std::uint64_t, 6> kLengths{1, 70, 0, 3000, 17, 2048};

std::uint64_t all_elements() {
  std::uint64_t sum = 0;
  for (const auto length : kLengths) sum += length;
  return sum;
}

/// One reduction by the device's kernel and by the host's.
void check(KernelMemory& memory, DType dtype, ReduceOp op, int ranks, double scale,
           std::mt19937& random) {
  CAPTURE(name(dtype), name(op), ranks, scale);
  const auto count = all_elements();
  std::vector<Bytes> inputs;
  std::vector<const void*> on_device;
  std::vector<const void*> on_host;
  for (int r = 0; r < ranks; ++r) {
    inputs.push_back(elements_of(dtype, count, random, true));
    on_device.push_back(memory.place(
        inputs.back(), random() % 2 * (random() % 16) / size_of(dtype) * size_of(dtype)));
  }
  for (const auto& input : inputs) on_host.push_back(input.data());
  std::vector<DeviceSpan> out;
  for (const auto length : kLengths) {
    const auto off = random() % 16 / size_of(dtype) * size_of(dtype);
    out.push_back({memory.place(Bytes(length * size_of(dtype)), off), length});
  }
  REQUIRE(memory.kernels->reduce({.in = on_device, .dtype = dtype, .op = op, .scale = scale}, out,
                                 memory.stream));
  Bytes got;
  for (const auto& span : out) {
    const auto part = memory.fetch(span.memory, span.elements * size_of(dtype));
    got.insert(got.end(), part.begin(), part.end());
  }
  Bytes expected(got.size());
  const horo::kernels::Reduction what{.dtype = dtype, .op = op, .postscale = scale, .ranks = ranks};
  horo::kernels::reduce_kernel(dtype, op)(what, expected.data(), on_host.data(), ranks, count);
  CHECK(got == expected);
}

}  // namespace

TEST_CASE("reductions on the device have the bits of reductions on the host") {
  KernelMemory memory;
  std::mt19937 random(5);
  for (int number = 0; number < horo::runtime::kDTypes; ++number) {
    const auto dtype = static_cast<DType>(number);
    for (const auto op : kOps) {
      if (dtype == DType::boolean && op != ReduceOp::min && op != ReduceOp::max) continue;
      if (dtype == DType::i64 && op == ReduceOp::average) continue;
      for (const int ranks : {1, 2, 3, 16}) check(memory, dtype, op, ranks, 1, random);
      if (is_floating(dtype)) check(memory, dtype, op, 2, 0.5, random);
    }
  }
  CHECK(memory.software.findings().empty());
}

TEST_CASE("reductions that the kernels do not have are refused") {
  KernelMemory memory;
  const std::vector<const void*> in(2, memory.place(Bytes(8)));
  const DeviceSpan out{memory.place(Bytes(8)), 1};
  const auto refused = [&](DType dtype, ReduceOp op, double scale) {
    const auto status = memory.kernels->reduce({.in = in, .dtype = dtype, .op = op, .scale = scale},
                                               {&out, 1}, memory.stream);
    return !status && status.error().code == horo::Errc::unsupported;
  };
  CHECK(refused(DType::boolean, ReduceOp::sum, 1));
  CHECK(refused(DType::i64, ReduceOp::average, 1));
  CHECK(refused(DType::i32, ReduceOp::sum, 2));
  CHECK(refused(DType::f32, ReduceOp::adasum, 1));
}

TEST_CASE("Adasum of two vectors on the device is that of the host") {
  KernelMemory memory;
  std::mt19937 random(6);
  auto* const scratch = *memory.device->allocate(horo::runtime::kPairScratch);
  for (const auto dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    for (const std::uint64_t count : {1ULL, 63ULL, 1000ULL, 100'000ULL}) {
      CAPTURE(name(dtype), count);
      const auto a = elements_of(dtype, count, random, false);
      const auto b = elements_of(dtype, count, random, false);
      auto* const out = memory.place(Bytes(a.size()));
      REQUIRE(memory.kernels->add_pair({memory.place(a), memory.place(b), count, dtype}, out, 0.5,
                                       scratch, memory.stream));
      const auto got = memory.fetch(out, a.size());
      horo::runtime::AdasumDots dots;
      for (std::size_t i = 0; i < count; ++i) {
        dots.ab += value_at(a, dtype, i) * value_at(b, dtype, i);
        dots.aa += value_at(a, dtype, i) * value_at(a, dtype, i);
        dots.bb += value_at(b, dtype, i) * value_at(b, dtype, i);
      }
      std::array weights{1.0, 1.0};
      horo::runtime::combine({0, 1, 2}, dots, weights);
      const double least = dtype == DType::f64 ? 1e-12 : dtype == DType::f32 ? 1e-6 : 1e-2;
      bool right = true;
      for (std::size_t i = 0; i < count && right; ++i) {
        const double expected =
            0.5 * (weights[0] * value_at(a, dtype, i) + weights[1] * value_at(b, dtype, i));
        right = std::abs(value_at(got, dtype, i) - expected) <= least * (1 + std::abs(expected));
      }
      CHECK(right);
    }
  }
  CHECK(memory.software.findings().empty());
}

TEST_CASE("Adasum of equal vectors gives them, and a vector of zeros changes nothing") {
  KernelMemory memory;
  std::mt19937 random(7);
  auto* const scratch = *memory.device->allocate(horo::runtime::kPairScratch);
  const auto a = elements_of(DType::f32, 100, random, false);
  auto* const out = memory.place(Bytes(a.size()));
  auto* const one = memory.place(a);
  REQUIRE(memory.kernels->add_pair({one, one, 100, DType::f32}, out, 1, scratch, memory.stream));
  CHECK(memory.fetch(out, a.size()) == a);
  auto* const zeros = memory.place(Bytes(a.size()));
  REQUIRE(memory.kernels->add_pair({one, zeros, 100, DType::f32}, out, 1, scratch, memory.stream));
  CHECK(memory.fetch(out, a.size()) == a);
  CHECK(memory.software.findings().empty());
}
