// SPDX-License-Identifier: Apache-2.0
#include "tests/software_device/kernels/kernel_memory.hpp"

#include <array>
#include <cstring>
#include <limits>

#include <catch2/catch.hpp>

#include "tests/software_device/nccl/nccl_element.hpp"

namespace horo::tests {

using runtime::DType;
using runtime::size_of;

namespace {

template <typename T>
void append(Bytes& bytes, T value) {
  const auto at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

double special_value(std::size_t number) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const std::array values{0.0,       -0.0,    kInfinite, -kInfinite, std::nan(""), 5e-324, 0x1p-24,
                          0x1.8p-25, 65519.9, 65520.0,   1e39,       0x1p-133,     -3.5,   1.0};
  return values.at(number % values.size());
}

void append_element(Bytes& bytes, DType dtype, double value) {
  using namespace horo::software_nccl;  // NOLINT(google-build-using-namespace)
  switch (dtype) {
    case DType::boolean:
      return append(bytes, static_cast<std::uint8_t>(value > 1 ? 1 : 0));
    case DType::u8:
      return append(bytes, static_cast<std::uint8_t>(value + 20));
    case DType::i8:
      return append(bytes, static_cast<std::int8_t>(value));
    case DType::u16:
      return append(bytes, static_cast<std::uint16_t>(value + 20));
    case DType::i16:
      return append(bytes, static_cast<std::int16_t>(value));
    case DType::i32:
      return append(bytes, static_cast<std::int32_t>(value));
    case DType::i64:
      return append(bytes, static_cast<std::int64_t>(value) << 33U);
    case DType::f16:
      return append(bytes, static_cast<std::uint16_t>(encode(value, kHalf)));
    case DType::bf16:
      return append(bytes, static_cast<std::uint16_t>(encode(value, kBfloat16)));
    case DType::f32:
      return append(bytes, static_cast<float>(value));
    case DType::f64:
      return append(bytes, value);
  }
}

/// The least integer, which all ranks often have, or the greatest, or a bool that is neither 0
/// nor 1.
void append_extreme(Bytes& bytes, DType dtype, std::uint64_t which) {
  if (dtype == DType::boolean)
    return append(bytes, static_cast<std::uint8_t>(std::uint64_t{2} << which % 3));
  const bool least = which % 4 != 0;
  const bool has_sign = dtype != DType::u8 && dtype != DType::u16;
  for (auto i = size_of(dtype); i > 1; --i)
    append(bytes, static_cast<std::uint8_t>(least ? 0 : 0xff));
  append(bytes, static_cast<std::uint8_t>((least ? 0 : 0xff) ^ (has_sign ? 0x80 : 0)));
}

}  // namespace

KernelMemory::KernelMemory(const std::string& plan)
    : software(plan), device(software.open()), stream(*device->make_stream()) {
  runtime::cuda::Context context = nullptr;
  REQUIRE(software.driver().retain_primary_context(&context, 0) == 0);
  auto loaded = runtime::DriverKernels::load(software.driver(), context,
                                             runtime::DriverKernels::file(*software.driver().api));
  REQUIRE(loaded);
  kernels = std::move(*loaded);
}

void* KernelMemory::place(const Bytes& bytes, std::size_t off) {
  auto* const memory = static_cast<std::byte*>(*device->allocate(bytes.size() + off + 1)) + off;
  put(*device, memory, bytes, stream);
  return memory;
}

Bytes elements_of(DType dtype, std::size_t count, std::mt19937& random, bool special) {
  Bytes bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const double usual = static_cast<double>(random() % 4000) / 100 - 20;
    const bool is_special = special && random() % 8 == 0;
    if (is_special && !is_floating(dtype)) {
      append_extreme(bytes, dtype, random());
    } else {
      append_element(bytes, dtype, is_special ? special_value(random()) : usual);
    }
  }
  return bytes;
}

double value_at(const Bytes& bytes, DType dtype, std::size_t i) {
  std::uint16_t small = 0;
  float single = 0;
  double full = 0;
  const auto* const from = bytes.data() + i * size_of(dtype);
  if (dtype == DType::f64) return std::memcpy(&full, from, sizeof full), full;
  if (dtype == DType::f32) return std::memcpy(&single, from, sizeof single), single;
  std::memcpy(&small, from, sizeof small);
  return software_nccl::decode(
      small, dtype == DType::f16 ? software_nccl::kHalf : software_nccl::kBfloat16);
}

}  // namespace horo::tests
