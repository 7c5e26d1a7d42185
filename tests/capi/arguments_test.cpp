// SPDX-License-Identifier: Apache-2.0
// Pointers that callers of the C ABI get wrong are errors, not crashes.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>

#include <catch2/catch.hpp>

#include "horo/horo.h"

namespace {

horo_tensor declare_sum(const char* name, std::int64_t count) {
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  desc.name = name;
  desc.dtype = HORO_FLOAT32;
  desc.ndim = 1;
  desc.shape = &count;
  horo_tensor tensor = 0;
  REQUIRE(horo_declare(&desc, &tensor) == HORO_OK);
  return tensor;
}

bool said(const std::string& part) {
  const std::string text = horo_last_error();
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("null pointers to operations, tensors and inputs are refused") {
  REQUIRE(horo_init() == HORO_OK);
  CHECK(horo_wait_all(nullptr, 2, -1) == HORO_INVALID_ARGUMENT);
  CHECK(said("the pointer to 2 operations is null"));
  CHECK(horo_await_all(nullptr, 2, -1) == HORO_INVALID_ARGUMENT);
  CHECK(said("the pointer to 2 operations is null"));
  CHECK(horo_wait_all(nullptr, 0, -1) == HORO_OK);
  CHECK(horo_await_all(nullptr, 0, -1) == HORO_OK);

  std::array<float, 4> values{1, 2, 3, 4};
  const auto tensor = declare_sum("x", 4);
  const void* in = values.data();
  void* out = values.data();
  horo_op op = 0;
  std::size_t submitted = 7;
  CHECK(horo_submit_many(nullptr, &in, &out, 1, &op, &submitted) == HORO_INVALID_ARGUMENT);
  CHECK(submitted == 0);
  CHECK(horo_submit_many(&tensor, nullptr, &out, 1, &op, nullptr) == HORO_INVALID_ARGUMENT);
  CHECK(horo_submit_many(&tensor, &in, &out, 1, nullptr, nullptr) == HORO_INVALID_ARGUMENT);
  CHECK(said("horo_submit_many"));
  CHECK(horo_submit_many(nullptr, nullptr, nullptr, 0, nullptr, nullptr) == HORO_OK);
  REQUIRE(horo_submit_many(&tensor, &in, &out, 1, &op, &submitted) == HORO_OK);
  CHECK(horo_wait(op, -1) == HORO_OK);
  CHECK(horo_shutdown() == HORO_OK);
}

TEST_CASE(
    "what cannot be rounded on the wire is refused, and callers without the field are served") {
  REQUIRE(horo_init() == HORO_OK);
  const std::int64_t count = 4;
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  desc.name = "w";
  desc.ndim = 1;
  desc.shape = &count;
  horo_tensor tensor = 0;
  desc.wire_dtype = HORO_WIRE_BFLOAT16;
  desc.wire_feedback = 1;
  CHECK(horo_declare(&desc, &tensor) == HORO_OK);
  desc.wire_feedback = 2;
  CHECK(horo_declare(&desc, &tensor) == HORO_INVALID_ARGUMENT);
  CHECK(said("wire_feedback 2"));
  desc.wire_feedback = -1;
  const int unknown = 7;
  std::memcpy(&desc.wire_dtype, &unknown, sizeof unknown);
  CHECK(horo_declare(&desc, &tensor) == HORO_INVALID_ARGUMENT);
  CHECK(said("wire_dtype 7"));
  desc.wire_dtype = HORO_WIRE_FLOAT16;
  desc.dtype = HORO_FLOAT64;
  CHECK(horo_declare(&desc, &tensor) == HORO_UNSUPPORTED);
  CHECK(said("tensor 'w': allreduce of float64 [4] by sum with wire_dtype float16"));
  // A caller that does not know these fields has not set the padding before them either.
  desc.size = offsetof(horo_tensor_desc, wire_dtype);
  desc.unused = 0x5a5a5a5a;
  CHECK(horo_declare(&desc, &tensor) == HORO_OK);
  CHECK(horo_shutdown() == HORO_OK);
}

TEST_CASE("a set's backend and the job's key are refused where there is none") {
  std::array<unsigned char, 32> key{};
  CHECK(horo_process_set_backend(0) == nullptr);
  REQUIRE(horo_init_alone() == HORO_OK);
  CHECK(horo_size() == 1);
  CHECK(horo_process_set_backend(0) == std::string("shm"));
  CHECK(horo_process_set_backend(7) == nullptr);
  CHECK(horo_process_set_backend(4'000'000'000U) == nullptr);
  CHECK(horo_job_key(nullptr, key.data()) == HORO_INVALID_ARGUMENT);
  CHECK(horo_job_key("purpose", nullptr) == HORO_INVALID_ARGUMENT);
  CHECK(horo_job_key("purpose", key.data()) == HORO_NOT_FOUND);
  CHECK(said("on one host"));
  CHECK(horo_shutdown() == HORO_OK);
  CHECK(horo_job_key("purpose", key.data()) == HORO_NOT_INITIALIZED);
  CHECK(said("horo_shutdown was called"));
}

TEST_CASE("memory of a GPU is refused before anything reads it") {
  REQUIRE(dlopen(HORO_TEST_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL) != nullptr);
  REQUIRE(horo_init() == HORO_OK);
  std::array<float, 4> values{1, 2, 3, 4};
  auto* const device = reinterpret_cast<void*>(std::uintptr_t{1} << 46U);  // NOLINT: never read
  const auto tensor = declare_sum("on device", 4);
  horo_op op = 0;
  CHECK(horo_submit(tensor, device, values.data(), &op) == HORO_UNSUPPORTED);
  CHECK(said("the input buffer at 0x400000000000 is memory of a GPU"));
  CHECK(horo_submit(tensor, values.data(), device, &op) == HORO_UNSUPPORTED);
  CHECK(said("the output buffer"));
  horo_submission submission = HORO_SUBMISSION_INIT;
  submission.tensor = tensor;
  submission.in = device;
  submission.out = device;
  CHECK(horo_submit_with(&submission, &op) == HORO_UNSUPPORTED);
  CHECK(horo_submit_all(&submission, 1, &op) == HORO_UNSUPPORTED);
  REQUIRE(horo_submit(tensor, values.data(), values.data(), &op) == HORO_OK);
  CHECK(horo_wait(op, -1) == HORO_OK);
  CHECK(values[3] == 4);
  CHECK(horo_shutdown() == HORO_OK);
}

TEST_CASE("a process without a GPU says that no tensor moves in device memory, and why") {
  setenv("HORO_GPU_DRIVER", "/nowhere/libcuda.so.1", 1);
  CHECK(horo_device_support("cuda") == HORO_UNAVAILABLE);
  CHECK(said("/nowhere/libcuda.so.1"));
  CHECK(horo_device_support("nccl") == HORO_UNAVAILABLE);
  CHECK(horo_device_support("rocm") == HORO_UNAVAILABLE);
  CHECK(said("/nowhere/libcuda.so.1"));
  CHECK(horo_device_support("tpu") == HORO_INVALID_ARGUMENT);
  CHECK(said("'tpu' is not one of cuda, nccl, rocm"));
  CHECK(horo_device_support(nullptr) == HORO_INVALID_ARGUMENT);
  setenv("HORO_GPU_OPERATIONS", "by-hand", 1);
  CHECK(horo_device_support("cuda") == HORO_INVALID_ARGUMENT);
  unsetenv("HORO_GPU_OPERATIONS");
  unsetenv("HORO_GPU_DRIVER");
}

TEST_CASE(
    "the library of devices is the one that a setting names, or that the process has loaded") {
  CHECK(horo_device_library("cuda") == nullptr);
  CHECK(horo_device_library("nccl") == nullptr);
  CHECK(horo_device_library("tpu") == nullptr);
  CHECK(horo_device_library(nullptr) == nullptr);
  setenv("HORO_GPU_DRIVER", "/nowhere/libamdhip64.so.6", 1);
  setenv("HORO_GPU_NCCL", "auto", 1);
  CHECK(horo_device_library("rocm") == std::string("/nowhere/libamdhip64.so.6"));
  CHECK(horo_device_library("nccl") == nullptr);
  setenv("HORO_GPU_NCCL", "/nowhere/librccl.so.1", 1);
  CHECK(horo_device_library("nccl") == std::string("/nowhere/librccl.so.1"));
  unsetenv("HORO_GPU_NCCL");
  unsetenv("HORO_GPU_DRIVER");
}

TEST_CASE("where a tensor is has to be said in the declaration and in the submission alike") {
  REQUIRE(horo_init() == HORO_OK);
  std::array<float, 4> values{1, 2, 3, 4};
  const std::int64_t count = 4;
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  desc.name = "somewhere";
  desc.ndim = 1;
  desc.shape = &count;
  constexpr int kUnknown = 7;
  std::memcpy(&desc.memory, &kUnknown, sizeof kUnknown);
  horo_tensor tensor = 0;
  CHECK(horo_declare(&desc, &tensor) == HORO_INVALID_ARGUMENT);
  CHECK(said("memory 7"));
  desc.memory = HORO_MEMORY_HOST;
  REQUIRE(horo_declare(&desc, &tensor) == HORO_OK);
  horo_submission submission = HORO_SUBMISSION_INIT;
  submission.tensor = tensor;
  submission.in = submission.out = values.data();
  submission.memory = HORO_MEMORY_DEVICE;
  horo_op op = 0;
  CHECK(horo_submit_with(&submission, &op) == HORO_INVALID_ARGUMENT);
  CHECK(said("is declared in host memory and submitted in device memory"));
  // A caller that knows no kinds of memory.
  submission.size = offsetof(horo_submission, memory);
  REQUIRE(horo_submit_with(&submission, &op) == HORO_OK);
  CHECK(horo_wait_stream(&op, 1, nullptr, -1) == HORO_OK);
  CHECK(horo_wait(op, -1) == HORO_OK);
  CHECK(horo_shutdown() == HORO_OK);
}
