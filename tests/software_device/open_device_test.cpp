// SPDX-License-Identifier: Apache-2.0
// Memory for results goes from one operation to the next, whose work comes after that of all
// before.
#include "runtime/device/open_device.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/software_device/loaded_device.hpp"

using horo::runtime::OpenDevice;
using horo::tests::SoftwareDevice;

TEST_CASE("memory of a result keeps its readers when the operation between has failed") {
  const SoftwareDevice software;
  OpenDevice gpu(software.open());
  auto* const stream = *gpu.device().make_stream();
  const auto event = *gpu.event();
  std::atomic<bool> open{false};
  software.gate(gpu.device(), stream, open);
  REQUIRE(gpu.device().record(event.get(), stream));

  auto first = *gpu.result(4096);
  auto* const memory = first->memory();
  first->note_use(event);  // A reader that has not come yet.
  first.reset();
  // The second operation fails before its stream has waited for that reader.
  auto second = *gpu.result(4096);
  REQUIRE(second->memory() == memory);
  second.reset();

  const auto third = *gpu.result(4096);
  REQUIRE(third->memory() == memory);
  CHECK(std::count(third->before().begin(), third->before().end(), event) == 1);
  open = true;
  while (!*gpu.device().done(event.get())) std::this_thread::yield();
}

TEST_CASE("a program may capture a graph while results are asked for and looked at") {
  const SoftwareDevice software("capture=1");
  OpenDevice gpu(software.open());
  auto* const stream = *gpu.device().make_stream();
  const auto event = *gpu.event();
  for (int i = 0; i < 20; ++i) {  // More than are kept, so that memory is freed.
    const auto result = *gpu.result(4096);
    REQUIRE(gpu.device().record(event.get(), stream));
    result->note_use(event);
  }
  while (!*gpu.device().done(event.get())) std::this_thread::yield();
  auto* const pinned = *gpu.device().allocate_host(100);
  gpu.device().free_host(pinned);
  CHECK(software.findings().empty());
}
