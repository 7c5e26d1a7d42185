// SPDX-License-Identifier: Apache-2.0
#include "tests/device_path/gpu.hpp"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <type_traits>

namespace horo::tests {

namespace {

std::uint64_t address(const void* memory) {
  return reinterpret_cast<std::uint64_t>(memory);
}

template <typename Function>
void find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  require(function != nullptr, name);
}

void* nccl() {
  const char* const file = std::getenv("HORO_GPU_NCCL");
  require(file != nullptr, "HORO_GPU_NCCL is not set");
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  require(library != nullptr, std::string("NCCL cannot be loaded: ") + file);
  return library;
}

std::string text_of(std::size_t (*findings)(char*, std::size_t)) {
  std::string text(findings(nullptr, 0) * 400 + 1, '\0');
  findings(text.data(), text.size());
  return text.c_str();
}

}  // namespace

void require(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "gpu_rank: %s\n", what.c_str());
  std::fflush(stderr);
  std::_Exit(1);
}

Gpu::Gpu(const std::string& driver, int device) : device_(device) {
  void* const library = dlopen(driver.c_str(), RTLD_NOW | RTLD_LOCAL);
  require(library != nullptr, "the driver cannot be loaded: " + driver);
  int (*init)(unsigned) = nullptr;
  int (*retain)(void**, int) = nullptr;
  find(library, init, "cuInit");
  find(library, retain, "cuDevicePrimaryCtxRetain");
  find(library, push_, "cuCtxPushCurrent_v2");
  find(library, allocate_, "cuMemAlloc_v2");
  find(library, allocate_managed_, "cuMemAllocManaged");
  find(library, allocate_pinned_, "cuMemHostAlloc");
  find(library, free_, "cuMemFree_v2");
  find(library, copy_, "cuMemcpyAsync");
  find(library, stream_, "cuStreamCreate");
  find(library, destroy_, "cuStreamDestroy_v2");
  find(library, synchronize_, "cuStreamSynchronize");
  find(library, plan_, "horo_software_device_plan");
  find(library, findings_, "horo_software_device_findings");
  find(library, pending_, "horo_software_device_pending");
  find(library, calls_, "horo_software_device_calls");
  find(library, launch_, "horo_software_device_launch");
  check(init(0), "cuInit");
  check(retain(&context_, device), "cuDevicePrimaryCtxRetain");
  use();
}

void Gpu::use() const {
  static thread_local const void* current = nullptr;
  if (current != context_) check(push_(context_), "cuCtxPushCurrent");
  current = context_;
}

void Gpu::check(int code, const char* call) const {
  require(code == 0, std::string(call) + " returned " + std::to_string(code));
}

void* Gpu::allocate(std::size_t bytes) const {
  use();
  std::uint64_t memory = 0;
  check(allocate_(&memory, bytes == 0 ? 1 : bytes), "cuMemAlloc");
  return reinterpret_cast<void*>(memory);  // NOLINT(performance-no-int-to-ptr): CUDA's addresses
}

void* Gpu::allocate_managed(std::size_t bytes) const {
  use();
  std::uint64_t memory = 0;
  check(allocate_managed_(&memory, bytes, 1), "cuMemAllocManaged");
  return reinterpret_cast<void*>(memory);  // NOLINT(performance-no-int-to-ptr): CUDA's addresses
}

void* Gpu::allocate_pinned(std::size_t bytes) const {
  use();
  void* memory = nullptr;
  check(allocate_pinned_(&memory, bytes, 0), "cuMemHostAlloc");
  return memory;
}

void Gpu::free(void* memory) const {
  use();
  check(free_(address(memory)), "cuMemFree");
}

void* Gpu::stream() const {
  use();
  void* made = nullptr;
  check(stream_(&made, 1), "cuStreamCreate");
  return made;
}

void Gpu::destroy(void* stream) const {
  use();
  check(destroy_(stream), "cuStreamDestroy");
}

void Gpu::put(void* to, const std::vector<std::uint8_t>& bytes, void* stream) const {
  use();
  if (bytes.empty()) return;
  check(copy_(address(to), address(bytes.data()), bytes.size(), stream), "cuMemcpyAsync");
}

std::vector<std::uint8_t> Gpu::fetch(const void* from, std::size_t bytes, void* stream) const {
  use();
  std::vector<std::uint8_t> got(bytes);
  if (bytes != 0) check(copy_(address(got.data()), address(from), bytes, stream), "cuMemcpyAsync");
  return got;
}

void Gpu::synchronize(void* stream) const {
  use();
  check(synchronize_(stream), "cuStreamSynchronize");
}

void Gpu::gate(void* stream, std::atomic<bool>& open) const {
  const auto wait = [](void* argument, int) {
    static_cast<std::atomic<bool>*>(argument)->wait(false);
  };
  use();
  check(launch_(stream, nullptr, 0, wait, &open), "horo_software_device_launch");
}

void Gpu::plan(const std::string& text) const {
  require(plan_(text.c_str()) == 0, "the plan is not understood: " + text);
}

std::string Gpu::findings() const {
  return text_of(findings_);
}

void Gpu::plan_nccl(const std::string& text) {
  int (*plan)(const char*) = nullptr;
  find(nccl(), plan, "horo_software_nccl_plan");
  require(plan(text.c_str()) == 0, "the plan is not understood: " + text);
}

std::string Gpu::nccl_findings() {
  std::size_t (*findings)(char*, std::size_t) = nullptr;
  find(nccl(), findings, "horo_software_nccl_findings");
  return text_of(findings);
}

horo_submission declared(const Gpu& gpu, horo_tensor_desc like, void* memory, void* stream) {
  like.memory = HORO_MEMORY_DEVICE;
  horo_submission given = HORO_SUBMISSION_INIT;
  require(horo_declare(&like, &given.tensor) == HORO_OK, horo_last_error());
  given.in = given.out = memory;
  given.memory = HORO_MEMORY_DEVICE;
  given.device = gpu.device();
  given.stream = stream;
  return given;
}

}  // namespace horo::tests
