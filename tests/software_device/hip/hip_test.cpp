// SPDX-License-Identifier: Apache-2.0
// HIP's runtime behind the functions of CUDA's driver, on the stand-in that has HIP's names. The
// libraries that cannot be used come first, because a process loads one.
#include <cstdlib>
#include <dlfcn.h>

#include <catch2/catch.hpp>

#include "runtime/device/device_memory.hpp"
#include "runtime/device/driver/driver_device.hpp"
#include "tests/software_device/loaded_device.hpp"

using horo::Errc;
using horo::runtime::Device;
using horo::runtime::cuda::load_driver;
using horo::tests::fetch;
using horo::tests::put;
using horo::tests::SoftwareDevice;

namespace {

constexpr std::size_t kSize = 1000;

/// The stand-in with HIP's names and two devices.
SoftwareDevice hip() {
  setenv("HORO_TEST_DEVICE_LIBRARY", HORO_TEST_SOFTWARE_HIP, 1);
  return SoftwareDevice("devices=2");
}

/// HIP's own function of the calling thread's device.
int current_device() {
  void* const library = dlopen(HORO_TEST_SOFTWARE_HIP, RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  const auto get = reinterpret_cast<int (*)(int*)>(dlsym(library, "hipGetDevice"));
  REQUIRE(get != nullptr);
  int device = -1;
  REQUIRE(get(&device) == 0);
  return device;
}

void choose_device(int device) {
  void* const library = dlopen(HORO_TEST_SOFTWARE_HIP, RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  REQUIRE(reinterpret_cast<int (*)(int)>(dlsym(library, "hipSetDevice"))(device) == 0);
}

std::string refusal(const std::string& file) {
  const auto loaded = load_driver(file);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().code == Errc::unavailable);
  return loaded.error().message;
}

}  // namespace

TEST_CASE("a HIP runtime that is not there is named, and where it comes from") {
  CHECK_THAT(refusal("/nowhere/libamdhip64.so.6"),
             Catch::StartsWith("HIP's runtime cannot be loaded: /nowhere/libamdhip64.so.6: "));
  CHECK_THAT(refusal("/nowhere/libamdhip64.so.6"), Catch::EndsWith("is built for ROCm"));
}

TEST_CASE("a HIP runtime that is too old is refused with the functions that it lacks") {
  const auto told = refusal(HORO_TEST_OLD_HIP);
  CHECK_THAT(told, Catch::StartsWith(HORO_TEST_OLD_HIP " has no hipRuntimeGetVersion, "));
  CHECK_THAT(told, Catch::Contains("hipPointerGetAttribute"));
  CHECK_THAT(told, !Catch::Contains("hipInit"));
  CHECK_THAT(told, Catch::EndsWith("install ROCm 5 or later"));
}

TEST_CASE("a HIP runtime that sees no device names the variable that hides all") {
  setenv("HIP_VISIBLE_DEVICES", "", 1);
  CHECK_THAT(refusal(HORO_TEST_SOFTWARE_HIP),
             Catch::Contains("HIP's runtime sees no device: HIP_VISIBLE_DEVICES is ''"));
  unsetenv("HIP_VISIBLE_DEVICES");
}

TEST_CASE("a file with HIP's names is HIP's runtime, whatever the host has") {
  const auto software = hip();
  CHECK(software.driver().api == &horo::runtime::cuda::kHip);
  CHECK(horo::runtime::cuda::loaded_driver() == &software.driver());
}

TEST_CASE("bytes come back from the memory of a HIP device in the order of its streams") {
  const auto software = hip();
  const auto device = software.open(1);
  const auto stream = *device->make_urgent_stream();
  auto* const memory = *device->allocate(kSize);
  const std::vector<std::uint8_t> bytes(kSize, 7);
  put(*device, memory, bytes, stream);
  CHECK(fetch(*device, memory, kSize, stream) == bytes);
  CHECK(device->uuid() == "GPU-50f7000000000001");
  CHECK(software.findings().empty());
  device->free(memory);
  device->destroy_stream(stream);
}

TEST_CASE("calls for one HIP device leave the thread its own device") {
  const auto software = hip();
  const auto first = software.open(0);
  const auto second = software.open(1);
  choose_device(1);
  auto* const memory = *first->allocate(kSize);
  CHECK(current_device() == 1);
  REQUIRE(first->enter());
  CHECK(current_device() == 0);
  auto* const other = *second->allocate(kSize);
  CHECK(current_device() == 0);
  first->leave();
  CHECK(current_device() == 1);
  CHECK(horo::runtime::owner_of(memory).device == 0);
  CHECK(horo::runtime::owner_of(other).device == 1);
  first->free(memory);
  second->free(other);
  choose_device(0);
}

TEST_CASE("host memory is told from HIP's device memory, pinned or not") {
  const auto software = hip();
  const auto device = software.open();
  auto* const pinned = *device->allocate_host(kSize);
  int ordinary = 0;
  CHECK_FALSE(horo::runtime::is_device_memory(pinned));
  CHECK_FALSE(horo::runtime::is_device_memory(&ordinary));
  auto* const memory = *device->allocate(kSize);
  CHECK(horo::runtime::is_device_memory(memory));
  device->free(memory);
  device->free_host(pinned);
}

TEST_CASE("errors have HIP's names") {
  const auto software = hip();
  const auto device = software.open();
  software.plan("devices=2 fail=cuMemAlloc@1:2");
  const auto failed = device->allocate(8);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == Errc::out_of_memory);
  CHECK(failed.error().message == "hipMalloc: out of memory (hipErrorOutOfMemory, 2)");
  const auto none = horo::runtime::open_driver_device(software.driver(), 7);
  REQUIRE_FALSE(none);
  CHECK(none.error().message == "no HIP device 7: this process sees 2");
  software.plan("");
}
