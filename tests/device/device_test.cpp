// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <thread>

#include <catch2/catch.hpp>

#include "runtime/backends/module.hpp"

using namespace horo;
using namespace horo::runtime;

namespace {

/// Returns null if there is no device, after checking the module's reason. HORO_TEST_NEEDS_DEVICE
/// says that there is one.
const ModuleEntry* module_or_reason(const char* name) {
  const auto entry = load_usable_module(name, HORO_TEST_MODULES);
  if (entry) return *entry;
  WARN(entry.error().message);
  REQUIRE(std::getenv("HORO_TEST_NEEDS_DEVICE") == nullptr);
  CHECK(entry.error().code == Errc::unavailable);
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  const bool says_driver = entry.error().message.find(
                               "CUDA's driver cannot be loaded: libcuda.so.1") != std::string::npos;
  CHECK(says_driver == (driver == nullptr));
  return nullptr;
}

std::vector<float> fetch(Device& device, const void* from, std::size_t count) {
  std::vector<float> values(count);
  const auto stream = *device.make_stream();
  const auto event = *device.make_event();
  REQUIRE(device.copy(values.data(), from, count * sizeof(float), stream));
  REQUIRE(device.record(event, stream));
  while (!*device.done(event)) std::this_thread::yield();
  device.destroy_event(event);
  device.destroy_stream(stream);
  return values;
}

void put(Device& device, void* to, const std::vector<float>& values) {
  const auto stream = *device.make_stream();
  const auto event = *device.make_event();
  REQUIRE(device.copy(to, values.data(), values.size() * sizeof(float), stream));
  REQUIRE(device.record(event, stream));
  while (!*device.done(event)) std::this_thread::yield();
  device.destroy_event(event);
  device.destroy_stream(stream);
}

}  // namespace

TEST_CASE("the modules load without a GPU and name what is missing") {
  CHECK(load_module("cuda", HORO_TEST_MODULES));
  CHECK(load_module("nccl", HORO_TEST_MODULES));
  module_or_reason("cuda");
  module_or_reason("nccl");
}

TEST_CASE("opening a device without a GPU fails as the probe does") {
  const auto entry = load_module("cuda", HORO_TEST_MODULES);
  REQUIRE(entry);
  const auto usable = (*entry)->probe();
  const auto device = (*entry)->open_device(0);
  CHECK(usable.has_value() == device.has_value());
  if (!usable) CHECK(device.error().message == usable.error().message);
  const auto beyond = (*entry)->open_device(1000);
  CHECK(beyond.error().code == (usable ? Errc::not_found : Errc::unavailable));
}

TEST_CASE("one kernel packs many tensors, scaled and cast, and unpacks them") {
  const auto* module = module_or_reason("cuda");
  if (module == nullptr) return;
  const auto device = std::move(*module->open_device(0));
  constexpr std::size_t kTensors = 300;  // More than one launch can take.
  std::vector<DeviceSpan> parts;
  std::vector<float> expected;
  std::uint64_t total = 0;
  for (std::size_t t = 0; t < kTensors; ++t) {
    const auto count = t % 7 == 0 ? 0 : t * 97 % 20011;
    std::vector<float> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 100));
    parts.push_back({*device->allocate(std::max<std::size_t>(count, 1) * sizeof(float)), count});
    if (count != 0) put(*device, parts.back().memory, values);
    for (const auto value : values) expected.push_back(value * 2);
    total += count;
  }
  const auto stream = *device->make_stream();
  void* half = *device->allocate(total * 2);
  const Conversion in{.from = DType::f32, .to = DType::f16, .scale = 2};
  const Conversion out{.from = DType::f16, .to = DType::f32};
  REQUIRE(device->packer()->pack(half, parts, in, stream));
  REQUIRE(device->packer()->unpack(parts, half, out, stream));
  const auto event = *device->make_event();
  REQUIRE(device->record(event, stream));
  while (!*device->done(event)) std::this_thread::yield();
  std::vector<float> got;
  for (const auto& part : parts) {
    const auto values = fetch(*device, part.memory, part.elements);
    got.insert(got.end(), values.begin(), values.end());
  }
  CHECK(got == expected);
  const Conversion none{.from = DType::i32, .to = DType::f32};
  CHECK(device->packer()->pack(half, parts, none, stream).error().code == Errc::unsupported);
}

TEST_CASE("NCCL reduces fused and single tensors of one rank") {
  const auto* module = module_or_reason("nccl");
  if (module == nullptr) return;
  const auto device = std::move(*(*load_module("cuda", HORO_TEST_MODULES))->open_device(0));
  const auto backend = std::move(*module->make(
      {.members = {0}, .name = "one", .start_timeout = std::chrono::seconds(60), .device = 0}));
  const std::vector<float> ones(1000, 1);
  std::vector<void*> memory;
  for (int i = 0; i < 3; ++i) {
    memory.push_back(*device->allocate(ones.size() * sizeof(float)));
    put(*device, memory.back(), ones);
  }
  Bucket fused{
      .like = {.op = ReduceOp::average, .dtype = DType::f32, .prescale = 4, .postscale = 2},
      .device = 0};
  for (int i = 0; i < 2; ++i)
    fused.parts.push_back({.in = memory[static_cast<std::size_t>(i)],
                           .out = memory[static_cast<std::size_t>(i)],
                           .elements = 1000});
  Bucket single{.like = {.dtype = DType::f32}, .device = 0};
  single.parts.push_back({.in = memory[2], .out = memory[2], .elements = 1000});
  Bucket host{.like = {.dtype = DType::f32}};
  CHECK(backend->start(host).error().code == Errc::unsupported);
  REQUIRE(backend->start(fused));
  REQUIRE(backend->start(single));
  while (backend->completed() < 2 && backend->health()) backend->progress();
  REQUIRE(backend->health());
  CHECK(fetch(*device, memory[0], 1000) == std::vector<float>(1000, 8));
  CHECK(fetch(*device, memory[1], 1000) == std::vector<float>(1000, 8));
  CHECK(fetch(*device, memory[2], 1000) == ones);
}
