// SPDX-License-Identifier: Apache-2.0
// The module `gloo`: collectives between hosts over TCP.
#include "runtime/backends/module.hpp"

#include "runtime/backends/flat/make_flat.hpp"
#include "runtime/backends/gloo/gloo_mesh.hpp"
#include "runtime/backends/gloo/gloo_transport.hpp"

namespace horo::runtime {

namespace {

Status probe() {
  return {};
}

Result<std::unique_ptr<Backend>> make(const Communicator& communicator) {
  HORO_TRY_STATUS(check(communicator));
  HORO_TRY(auto context, connect_mesh(communicator));
  auto transport = std::make_unique<GlooTransport>(std::move(context), communicator.members,
                                                   communicator.timeout);
  return make_flat("gloo", std::move(transport), communicator);
}

}  // namespace

}  // namespace horo::runtime

HORO_BACKEND_MODULE(.name = "gloo", .probe = &horo::runtime::probe, .make = &horo::runtime::make,
                    .exchange = nullptr, .open_device = nullptr);
