// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/driver/device_api.hpp"

#include <catch2/catch.hpp>

using namespace horo::runtime::cuda;

namespace {

std::array<char, 16> bytes_of(std::string_view text) {
  std::array<char, 16> bytes{};
  text.copy(bytes.data(), bytes.size());
  return bytes;
}

bool says(const std::string& text, std::string_view part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the library that the program has loaded is chosen, else the one for the host's GPUs") {
  CHECK(&choose_api({}) == &kCuda);
  CHECK(&choose_api({.nvidia = true}) == &kCuda);
  CHECK(&choose_api({.amd = true}) == &kHip);
  CHECK(&choose_api({.nvidia = true, .amd = true}) == &kCuda);
  CHECK(&choose_api({.hip_loaded = true, .nvidia = true}) == &kHip);
  CHECK(&choose_api({.cuda_loaded = true, .amd = true}) == &kCuda);
  CHECK(&choose_api({.cuda_loaded = true, .hip_loaded = true, .amd = true}) == &kHip);
}

TEST_CASE("the reason names what decided against a library") {
  CHECK(says(why_not_chosen(kHip, {}), "there is no /dev/kfd"));
  CHECK(says(why_not_chosen(kHip, {.nvidia = true, .amd = true}), "devices of NVIDIA and of AMD"));
  CHECK(
      says(why_not_chosen(kCuda, {.amd = true}), "devices of AMD only, so HIP's runtime is used"));
  CHECK(says(why_not_chosen(kCuda, {.hip_loaded = true, .nvidia = true}),
             "this program has loaded HIP's runtime, so CUDA's driver is not used"));
}

TEST_CASE("versions are written as their vendors write them") {
  CHECK(version_text(kCuda, 12010) == "12.1");
  CHECK(version_text(kCuda, 13000) == "13.0");
  CHECK(version_text(kHip, 50221153) == "5.2");
  CHECK(version_text(kHip, 60443482) == "6.4");
}

TEST_CASE("a UUID is written as the vendor's tools write it, and one of no device is none") {
  CHECK(uuid_text(kCuda, bytes_of("0123456789abcdef")) ==
        "GPU-30313233-3435-3637-3839-616263646566");
  CHECK(uuid_text(kHip, bytes_of("0123456789abcdef")) == "GPU-0123456789abcdef");
  CHECK(uuid_text(kHip, bytes_of("XX")).empty());
  CHECK(uuid_text(kHip, bytes_of("\x4b\x2c\x1a\x9f")) ==
        "GPU-4b2c1a9f-0000-0000-0000-000000000000");
}
