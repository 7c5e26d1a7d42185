// SPDX-License-Identifier: Apache-2.0
// A module in the place of tcp that connects, by tcp, only while the test's gate is open.
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "runtime/backends/module.hpp"
#include "tests/spanning/gate.hpp"

namespace horo::spanning {

namespace {

Status probe() {
  return {};
}

Result<std::unique_ptr<runtime::Backend>> make(const runtime::Communicator& communicator) {
  const char* const address = std::getenv("HORO_TEST_GATE");
  auto* const gate = reinterpret_cast<Gate*>(std::strtoull(address, nullptr, 16));
  ++gate->waiting;
  while (gate->closed) std::this_thread::yield();
  --gate->waiting;
  HORO_TRY(const auto* const real, runtime::load_module("tcp", HORO_TEST_MODULES));
  return real->make(communicator);
}

}  // namespace

}  // namespace horo::spanning

HORO_BACKEND_MODULE(.name = "tcp", .probe = &horo::spanning::probe, .make = &horo::spanning::make,
                    .exchange = nullptr, .open_device = nullptr);
