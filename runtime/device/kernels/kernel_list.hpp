// SPDX-License-Identifier: Apache-2.0
// Every kernel: its name on the device, and its class. HORO_KERNELS(X) calls X(name, class).
#pragma once

#include "runtime/device/kernels/adasum_kernel.hpp"
#include "runtime/device/kernels/copy_kernel.hpp"
#include "runtime/device/kernels/sum_kernel.hpp"

#define HORO_OF_SIZES(X, name, Kernel, ...)                                   \
  X(horo_##name##_few, Kernel<__VA_ARGS__, horo::runtime::device_code::kFew>) \
  X(horo_##name##_many, Kernel<__VA_ARGS__, horo::runtime::device_code::kMany>)

#define HORO_CONVERT_FROM(X, from, From)                              \
  HORO_OF_SIZES(X, convert_##from##_f16, ConvertKernel, From, Half)   \
  HORO_OF_SIZES(X, convert_##from##_bf16, ConvertKernel, From, Brain) \
  HORO_OF_SIZES(X, convert_##from##_f32, ConvertKernel, From, float)  \
  HORO_OF_SIZES(X, convert_##from##_f64, ConvertKernel, From, double)

#define HORO_ADASUM_OF(X, type, Type)   \
  X(horo_dots_##type, DotsKernel<Type>) \
  X(horo_combine_##type, CombineKernel<Type>)

#define HORO_KERNELS(X)                               \
  HORO_OF_SIZES(X, move, MoveKernel, std::uint8_t)    \
  HORO_CONVERT_FROM(X, f16, Half)                     \
  HORO_CONVERT_FROM(X, bf16, Brain)                   \
  HORO_CONVERT_FROM(X, f32, float)                    \
  HORO_CONVERT_FROM(X, f64, double)                   \
  HORO_OF_SIZES(X, sum_bool, SumKernel, Truth)        \
  HORO_OF_SIZES(X, sum_u8, SumKernel, std::uint8_t)   \
  HORO_OF_SIZES(X, sum_i8, SumKernel, std::int8_t)    \
  HORO_OF_SIZES(X, sum_u16, SumKernel, std::uint16_t) \
  HORO_OF_SIZES(X, sum_i16, SumKernel, std::int16_t)  \
  HORO_OF_SIZES(X, sum_i32, SumKernel, std::int32_t)  \
  HORO_OF_SIZES(X, sum_i64, SumKernel, std::int64_t)  \
  HORO_OF_SIZES(X, sum_f16, SumKernel, Half)          \
  HORO_OF_SIZES(X, sum_bf16, SumKernel, Brain)        \
  HORO_OF_SIZES(X, sum_f32, SumKernel, float)         \
  HORO_OF_SIZES(X, sum_f64, SumKernel, double)        \
  HORO_ADASUM_OF(X, f16, Half)                        \
  HORO_ADASUM_OF(X, bf16, Brain)                      \
  HORO_ADASUM_OF(X, f32, float)                       \
  HORO_ADASUM_OF(X, f64, double)                      \
  X(horo_finish_dots, FinishDotsKernel)
