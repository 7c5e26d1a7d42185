// SPDX-License-Identifier: Apache-2.0
#include "tests/software_device/loaded_device.hpp"

#include <cstdlib>
#include <dlfcn.h>

#include <catch2/catch.hpp>

#include "runtime/device/driver/driver_device.hpp"

namespace horo::tests {

std::string SoftwareDevice::path() {
  const char* const other = std::getenv("HORO_TEST_DEVICE_LIBRARY");
  return other == nullptr ? HORO_TEST_SOFTWARE_DEVICE : other;
}

SoftwareDevice::SoftwareDevice(const std::string& plan) {
  void* const library = dlopen(path().c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto find = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    REQUIRE(function != nullptr);
  };
  find(plan_, "horo_software_device_plan");
  find(findings_, "horo_software_device_findings");
  find(pending_, "horo_software_device_pending");
  find(allocated_, "horo_software_device_allocated");
  find(launch_, "horo_software_device_launch");
  this->plan(plan);
  setenv("HORO_GPU_KERNELS", HORO_TEST_SOFTWARE_KERNELS, 1);
  const auto loaded = runtime::cuda::load_driver(path());
  REQUIRE(loaded);
  driver_ = *loaded;
}

void SoftwareDevice::plan(const std::string& text) const {
  REQUIRE(plan_(text.c_str()) == 0);
}

std::string SoftwareDevice::findings() const {
  std::string text(findings_(nullptr, 0) * 400 + 1, '\0');
  findings_(text.data(), text.size());
  return text.c_str();
}

void SoftwareDevice::gate(runtime::Device& device, runtime::StreamHandle stream,
                          std::atomic<bool>& open) const {
  const runtime::EnteredDevice entered(device);
  const auto wait = [](void* argument, int) {
    static_cast<std::atomic<bool>*>(argument)->wait(false);
  };
  HORO_CHECK(launch_(stream, nullptr, 0, wait, &open) == 0);
}

std::unique_ptr<runtime::Device> SoftwareDevice::open(int index) const {
  auto device = runtime::open_driver_device(*driver_, index);
  REQUIRE(device);
  return std::move(*device);
}

void put(runtime::Device& device, void* to, const std::vector<std::uint8_t>& bytes,
         runtime::StreamHandle stream) {
  // Ordinary memory is read before the call returns.
  HORO_CHECK(device.copy(to, bytes.data(), bytes.size(), stream).has_value());
}

std::vector<std::uint8_t> fetch(runtime::Device& device, const void* from, std::size_t bytes,
                                runtime::StreamHandle stream) {
  std::vector<std::uint8_t> got(bytes);
  // A copy to ordinary memory returns when it is done.
  HORO_CHECK(device.copy(got.data(), from, bytes, stream).has_value());
  return got;
}

}  // namespace horo::tests
