// SPDX-License-Identifier: Apache-2.0
// The file of kernels that hipcc has made.
#include <fstream>
#include <iterator>
#include <string>

#include <catch2/catch.hpp>

#include "runtime/device/kernels/kernel_list.hpp"

TEST_CASE("the file for AMD's devices has a descriptor of every kernel") {
  std::ifstream input(HORO_TEST_IMAGE, std::ios::binary);
  const std::string image{std::istreambuf_iterator<char>(input), {}};
  REQUIRE_FALSE(image.empty());
#define HORO_LOOK_FOR(name, ...) CHECK(image.find(#name ".kd") != std::string::npos);
  HORO_KERNELS(HORO_LOOK_FOR)
#undef HORO_LOOK_FOR
}
