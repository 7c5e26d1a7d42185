// SPDX-License-Identifier: Apache-2.0
// Packing and unpacking of many tensors by one kernel: every type, length and misalignment.
#include <cmath>
#include <cstring>

#include <catch2/catch.hpp>

#include "tests/software_device/kernels/kernel_memory.hpp"
#include "tests/software_device/nccl/nccl_element.hpp"

using horo::runtime::Conversion;
using horo::runtime::DeviceSpan;
using horo::runtime::DType;
using horo::runtime::is_floating;
using horo::runtime::size_of;
using horo::tests::Bytes;
using horo::tests::elements_of;
using horo::tests::KernelMemory;
using horo::tests::value_at;

namespace {

constexpr std::size_t kLongest = 70;
constexpr std::uint8_t kUntouched = 0xa5;

/// Tensors of all lengths from 0 to 70, with gaps between them, in one allocation.
struct Tensors {
  Tensors(KernelMemory& memory, DType type, std::mt19937& random, std::size_t off, bool special)
      : dtype(type) {
    std::vector<std::size_t> starts;
    for (std::size_t length = 0; length <= kLongest; ++length) {
      image.resize(image.size() + random() % 5 * size_of(dtype), kUntouched);
      starts.push_back(image.size());
      const auto elements = elements_of(dtype, length, random, special);
      image.insert(image.end(), elements.begin(), elements.end());
      flat.insert(flat.end(), elements.begin(), elements.end());
    }
    base = static_cast<std::byte*>(memory.place(image, off));
    for (std::size_t length = 0; length <= kLongest; ++length)
      spans.push_back({base + starts.at(length), length});
  }

  std::size_t elements() const { return flat.size() / size_of(dtype); }

  DType dtype;
  Bytes image;  ///< The allocation's bytes, gaps included.
  Bytes flat;   ///< The tensors end to end.
  std::byte* base = nullptr;
  std::vector<DeviceSpan> spans;
};

/// The right result of a conversion, computed without the code of the kernels.
Bytes converted(const Bytes& bytes, const Conversion& how) {
  using namespace horo::software_nccl;  // NOLINT(google-build-using-namespace)
  Bytes out;
  const bool full = how.from == DType::f64 || how.to == DType::f64;
  for (std::size_t i = 0; i < bytes.size() / size_of(how.from); ++i) {
    const double value = value_at(bytes, how.from, i);
    const double product =
        full ? value * how.scale
             : static_cast<double>(static_cast<float>(value) * static_cast<float>(how.scale));
    const auto single = static_cast<float>(product);
    const auto small =
        static_cast<std::uint16_t>(encode(product, how.to == DType::f16 ? kHalf : kBfloat16));
    const auto* const from = how.to == DType::f64   ? static_cast<const void*>(&product)
                             : how.to == DType::f32 ? static_cast<const void*>(&single)
                                                    : static_cast<const void*>(&small);
    out.resize(out.size() + size_of(how.to));
    std::memcpy(out.data() + out.size() - size_of(how.to), from, size_of(how.to));
  }
  return out;
}

bool same(const Bytes& got, const Bytes& expected, DType dtype) {
  if (got.size() != expected.size()) return false;
  for (std::size_t i = 0; i < got.size() / size_of(dtype); ++i) {
    const auto at = i * size_of(dtype);
    if (std::memcmp(got.data() + at, expected.data() + at, size_of(dtype)) == 0) continue;
    // NaN has many forms.
    if (!std::isnan(value_at(got, dtype, i)) || !std::isnan(value_at(expected, dtype, i))) {
      UNSCOPED_INFO("element " << i << ": " << value_at(got, dtype, i) << ", expected "
                               << value_at(expected, dtype, i));
      return false;
    }
  }
  return true;
}

constexpr std::array kFloats{DType::f16, DType::bf16, DType::f32, DType::f64};

}  // namespace

TEST_CASE("packing and unpacking move every type, length and misalignment, and nothing beside it") {
  KernelMemory memory;
  std::mt19937 random(1);
  for (int number = 0; number < horo::runtime::kDTypes; ++number) {
    const auto dtype = static_cast<DType>(number);
    const Conversion how{.from = dtype, .to = dtype};
    for (std::size_t off = 0; off < 16; ++off) {
      CAPTURE(name(dtype), off);
      const Tensors tensors(memory, dtype, random, off * size_of(dtype) % 16, false);
      // The buffer begins at another misalignment than the tensors.
      const auto buffer_off = random() % 16 / size_of(dtype) * size_of(dtype);
      const Bytes guard(tensors.flat.size() + 32, kUntouched);
      auto* const buffer = static_cast<std::byte*>(memory.place(guard, buffer_off));
      REQUIRE(memory.kernels->pack(buffer, tensors.spans, how, memory.stream));
      auto expected = tensors.flat;
      expected.resize(guard.size(), kUntouched);
      REQUIRE(memory.fetch(buffer, guard.size()) == expected);
      // Back, into memory that holds other bytes.
      horo::tests::put(*memory.device, tensors.base, Bytes(tensors.image.size(), kUntouched),
                       memory.stream);
      REQUIRE(memory.kernels->unpack(tensors.spans, buffer, how, memory.stream));
      REQUIRE(memory.fetch(tensors.base, tensors.image.size()) == tensors.image);
    }
  }
  CHECK(memory.software.findings().empty());
}

TEST_CASE("conversions between floating-point types round once, after the factor") {
  KernelMemory memory;
  std::mt19937 random(2);
  for (const auto from : kFloats) {
    for (const auto to : kFloats) {
      for (const double scale : {1.0, 0.5, 1.0 / 3}) {
        for (std::size_t off = 0; off < 16; off += 2) {
          const Conversion how{.from = from, .to = to, .scale = scale};
          CAPTURE(name(from), name(to), scale, off);
          const Tensors tensors(memory, from, random, off / size_of(from) * size_of(from), true);
          const auto count = tensors.elements();
          auto* const buffer = memory.place(Bytes(count * size_of(to)));
          REQUIRE(memory.kernels->pack(buffer, tensors.spans, how, memory.stream));
          const auto got = memory.fetch(buffer, count * size_of(to));
          REQUIRE(same(got, converted(tensors.flat, how), to));
          // Back, from the buffer's type to the tensors'.
          const Conversion back{.from = to, .to = from, .scale = scale};
          REQUIRE(memory.kernels->unpack(tensors.spans, buffer, back, memory.stream));
          auto* const flat = memory.place(Bytes(tensors.flat.size()));
          REQUIRE(
              memory.kernels->pack(flat, tensors.spans, {.from = from, .to = from}, memory.stream));
          REQUIRE(same(memory.fetch(flat, tensors.flat.size()), converted(got, back), from));
        }
      }
    }
  }
  CHECK(memory.software.findings().empty());
}

TEST_CASE(
    "every half and bfloat16 widens exactly, and every float near a tie rounds as it should") {
  KernelMemory memory;
  std::mt19937 random(3);
  for (const auto small : {DType::f16, DType::bf16}) {
    Bytes all;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      all.push_back(static_cast<std::uint8_t>(bits));
      all.push_back(static_cast<std::uint8_t>(bits >> 8U));
    }
    for (const auto large : {DType::f32, DType::f64}) {
      CAPTURE(name(small), name(large));
      const Conversion how{.from = small, .to = large};
      const DeviceSpan whole{memory.place(all), 0x10000};
      auto* const buffer = memory.place(Bytes(0x10000 * size_of(large)));
      REQUIRE(memory.kernels->pack(buffer, {&whole, 1}, how, memory.stream));
      auto wide = memory.fetch(buffer, 0x10000 * size_of(large));
      REQUIRE(same(wide, converted(all, how), large));
      // Around the numbers and the ties between them.
      for (std::size_t i = 0; i < 0x10000; ++i)
        wide[i * size_of(large)] = static_cast<std::uint8_t>(random() % 3 == 0 ? 0 : random());
      const DeviceSpan near{memory.place(wide), 0x10000};
      const Conversion back{.from = large, .to = small};
      REQUIRE(memory.kernels->pack(buffer, {&near, 1}, back, memory.stream));
      REQUIRE(same(memory.fetch(buffer, all.size()), converted(wide, back), small));
    }
  }
}

TEST_CASE("a thousand tensors are one launch, and a table of an old driver is several") {
  KernelMemory memory("fail=cuLaunchKernel@2");
  std::vector<DeviceSpan> spans;
  auto* const base = static_cast<std::byte*>(memory.place(Bytes(1000 * 1024, 3)));
  for (std::size_t t = 0; t < 1000; ++t) spans.push_back({base + t * 1024, 256});
  auto* const buffer = memory.place(Bytes(1000 * 1024));
  REQUIRE(memory.kernels->pack(buffer, spans, {}, memory.stream));
  CHECK(memory.fetch(buffer, 1000 * 1024) == Bytes(1000 * 1024, 3));
  // The second launch fails.
  CHECK_FALSE(memory.kernels->unpack(spans, buffer, {}, memory.stream));
  memory.software.plan("cuda=12000 fail=cuLaunchKernel@9");
  KernelMemory old("cuda=12000 fail=cuLaunchKernel@9");
  auto* const other = old.place(Bytes(1000 * 1024));
  CHECK(old.kernels->pack(other, spans, {}, old.stream));
  CHECK(old.fetch(other, 1000 * 1024) == Bytes(1000 * 1024, 3));
}

TEST_CASE("a long tensor is cut into tiles whose ends meet") {
  KernelMemory memory;
  std::mt19937 random(4);
  constexpr std::size_t kLong = 100'003;
  const auto elements = elements_of(DType::f32, kLong, random, false);
  const std::array spans{DeviceSpan{memory.place(elements, 4), kLong},
                         DeviceSpan{memory.place(elements, 8), kLong}};
  auto* const buffer = memory.place(Bytes(2 * kLong * 2));
  const Conversion how{.from = DType::f32, .to = DType::bf16, .scale = 0.25};
  REQUIRE(memory.kernels->pack(buffer, spans, how, memory.stream));
  auto both = elements;
  both.insert(both.end(), elements.begin(), elements.end());
  CHECK(same(memory.fetch(buffer, 2 * kLong * 2), converted(both, how), DType::bf16));
}

TEST_CASE("kernels take part in the order of streams, and a missing event is found") {
  KernelMemory memory("delay=100");
  const auto other = *memory.device->make_stream();
  const DeviceSpan tensor{memory.place(Bytes(64, 1)), 16};
  auto* const buffer = *memory.device->allocate(64);
  REQUIRE(memory.kernels->pack(buffer, {&tensor, 1}, {}, other));
  CHECK(memory.software.findings().find("not ordered") != std::string::npos);
}

TEST_CASE("factors of integers, and a file that holds no kernels, are refused") {
  KernelMemory memory;
  const DeviceSpan tensor{memory.place(Bytes(64, 1)), 16};
  const Conversion how{.from = DType::i32, .to = DType::i32, .scale = 2};
  CHECK(memory.kernels->pack(tensor.memory, {&tensor, 1}, how, memory.stream).error().code ==
        horo::Errc::unsupported);
  horo::runtime::cuda::Context context = nullptr;
  const auto& driver = memory.software.driver();
  REQUIRE(driver.retain_primary_context(&context, 0) == 0);
  const auto none = horo::runtime::DriverKernels::load(driver, context, "/nowhere/kernels");
  REQUIRE_FALSE(none);
  CHECK(none.error().code == horo::Errc::not_found);
  const auto wrong = horo::runtime::DriverKernels::load(driver, context, "/proc/self/exe");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message.find(driver.names().load_module) != std::string::npos);
  const bool hip = driver.api == &horo::runtime::cuda::kHip;
  CHECK(wrong.error().message.find(hip ? "the driver is for HIP 6.4"
                                       : "the driver is for CUDA 13.0") != std::string::npos);
}
